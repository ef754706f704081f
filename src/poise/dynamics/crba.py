"""The mass matrix: composite rigid-body algorithm (CRBA)."""

from __future__ import annotations

from poise.dynamics.kinematics import place_links, weigh_links
from poise.kernel.jit import kernel
from poise.kernel.memory import Real, View, load, store
from poise.kernel.scalars import zero
from poise.kernel.spatial import Inertia, pair

MASS = View("Mass", composite=Inertia, M=Real)


@kernel
def mass_matrix(m, s, w, t):
    """M, row by row, armature included: M_de = s_d · I s_e, with the inertia of all that the outer joint carries."""
    place_links(m, s, w)
    weigh_links(m, w)
    for i in range(m.n_links):
        store(t.composite, i, load(w.inertia, i))
    for n in range(m.n_links):
        i = m.n_links - 1 - n
        parent = load(m.link_parent, i)
        if parent >= 0:
            store(t.composite, parent, load(t.composite, parent) + load(t.composite, i))
    for d in range(m.nv):
        h = load(t.composite, load(m.dof_link, d)) @ load(w.axis, d)
        for e in range(d):  # dofs on different branches are not coupled
            store(t.M, d * m.nv + e, zero(h.f.x))
            store(t.M, e * m.nv + d, zero(h.f.x))
        store(t.M, d * m.nv + d, pair(load(w.axis, d), h) + load(m.dof_armature, d))
        e = load(m.dof_parent, d)
        while e >= 0:
            entry = pair(load(w.axis, e), h)
            store(t.M, d * m.nv + e, entry)
            store(t.M, e * m.nv + d, entry)
            e = load(m.dof_parent, e)
