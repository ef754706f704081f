"""Frames of a recording, copied in compiled code after a step: state, contacts, solver statistics, forces, energy."""

from __future__ import annotations

from poise.constraints.motor_rows import FIRST_ID
from poise.constraints.row_kernels import N_KINDS, stride_of
from poise.constraints.store import CONTACT, SINGLE
from poise.dynamics.totals import add_up
from poise.formulations.contact_events import contact_of
from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Index, Real, View, load, load_lane, store
from poise.kernel.spatial import Force
from poise.kernel.vec import Vec3, zero3

SOLVER = ("rows", "sweeps", "newton_steps", "residual", "parts")
"""Statistics of a frame, in their order."""
N_SOLVER = len(SOLVER)
ENERGIES = ("kinetic", "gravity", "spring")
N_ENERGIES = len(ENERGIES)

FRAMES = View(
    "Frames",
    room=Count,
    contact_room=Count,  # of all frames together
    n_motors=Count,  # rows of motors
    # what frames hold beside time, coordinates and velocities
    has_energy=Count,
    has_solver=Count,
    has_torques=Count,
    has_contacts=Count,
    every=Index,  # (1) steps from frame to frame, 0 where none are wanted
    due=Index,  # (1) steps until the next frame
    count=Index,  # (1) frames since they were read
    answer=Index,  # (1) the last one of the observer: see `observation`
    # of the last step
    done=Index,  # (1) 0 where there is none
    parts=Index,  # (1) that it was split into
    v_begin=Real,  # (nv) velocities at its beginning
    v_end=Real,  # (nv) at its end, by the equations of motion at its beginning
    tau_given=Real,  # (nv) generalized forces that were given
    unit=Real,  # (1) what multipliers are divided by to be forces; 0: the length of the step; s
    told=Index,  # (1) 1 where the statistics are those of `told_solver`
    told_solver=Real,  # (N_SOLVER)
    plain=Real,  # (nv) room to work in
    # by frame
    time=Real,
    q=Real,
    v=Real,
    solver=Real,
    tau=Real,
    passive=Real,
    motor=Real,
    energy=Real,
    momentum=Force,  # angular, about the centre of mass; linear
    com=Vec3,
    mass=Real,
    contact_start=Index,  # (room + 1)
    # by contact
    shape=Index,  # two each
    point=Vec3,
    normal=Vec3,
    depth=Real,
    force=Vec3,  # on the second shape
)


@kernel
def has_frame_room(r, f):
    """Whether there is room for one more frame, with all contacts that have rows."""
    n = load(f.count, 0)
    if n >= f.room:
        return False
    return f.has_contacts == 0 or load(f.contact_start, n) + load(r.count, CONTACT) <= f.contact_room


@kernel
def record_solver(o, r, f, n):
    """How the constraints of the step were solved."""
    at = N_SOLVER * n
    if load(f.told, 0) != 0:
        for k in range(N_SOLVER):
            store(f.solver, at + k, load(f.told_solver, k))
        return
    rows = 0
    for kind in range(N_KINDS):
        rows += load(r.count, kind) * stride_of(kind)
    store(f.solver, at, float(rows))
    store(f.solver, at + 1, load(o.swept, 0))
    store(f.solver, at + 2, load(o.stepped, 0))
    store(f.solver, at + 3, load(o.residual, 0))
    store(f.solver, at + 4, float(load(f.parts, 0)))


@kernel
def record_place(c, f, at, k, lane):
    """Where contact k of a lane is: its shapes, point, normal and depth."""
    store(f.shape, 2 * at, load_lane(c.a, k, lane))
    store(f.shape, 2 * at + 1, load_lane(c.b, k, lane))
    store(f.point, at, load_lane(c.point, k, lane))
    store(f.normal, at, load_lane(c.normal, k, lane))
    store(f.depth, at, -load_lane(c.gap, k, lane))


@kernel
def record_contacts(c, r, f, n, unit):
    """Contacts that have rows, in the order in which they were found, with their forces."""
    at, found, first = load(f.contact_start, n), min(load(c.count, 0), c.room), load(r.first, CONTACT)
    for block in range(load(r.count, CONTACT)):
        slot = first + 3 * block
        k = contact_of(c, r, slot, found, 0)
        if k >= 0:
            record_place(c, f, at, k, 0)
            force = zero3(unit)
            for i in range(slot, slot + 3):
                force = force + load(r.Jb, i).f * load(r.lam, i)
            store(f.force, at, Vec3(force.x / unit, force.y / unit, force.z / unit))
            at += 1
    store(f.contact_start, n + 1, at)


@kernel
def record_motors(r, b, f, n, unit):
    """Forces of motors: of those that are rows, from their multipliers."""
    at = n * f.n_motors
    for j in range(f.n_motors):
        store(f.motor, at + j, load(b.force, j))
    first = load(r.first, SINGLE)
    for slot in range(first, first + load(r.count, SINGLE)):
        j = FIRST_ID - load(r.id, slot)
        if j >= 0 and j < f.n_motors:
            store(f.motor, at + j, load(r.lam, slot) / unit)


@kernel
def record_torques(m, w, b, f, n, dt):
    """Generalized forces that were given, and those of springs, dampers and drives as they were at the step's end."""
    for d in range(m.nv):
        store(f.plain, d, 0.0)
    for j in range(f.n_motors):  # motors that are plain forces act with those, and are told apart
        for term in range(load(b.term_start, j), load(b.term_start, j + 1)):
            d = load(b.term_dof, term)
            store(f.plain, d, load(f.plain, d) + load(b.force, j) * load(b.term_gear, term))
    for k in range(b.n_ranges):
        d = load(b.range_dof, k)
        store(f.plain, d, load(f.plain, d) + load(b.range_cut, k))
    for d in range(m.nv):
        given, a = load(f.tau_given, d), (load(f.v_end, d) - load(f.v_begin, d)) / dt
        store(f.tau, n * m.nv + d, given)
        passive = load(w.total, d) - given - load(w.diagonal, d) * a - load(f.plain, d)
        store(f.passive, n * m.nv + d, passive)


@kernel
def record_nothing(m, f, n):
    """The forces and statistics of a world that has made no step."""
    for k in range(N_SOLVER * n, N_SOLVER * (n + 1)):
        store(f.solver, k, 0.0)
    for d in range(m.nv):
        store(f.tau, n * m.nv + d, load(f.tau_given, d))
        store(f.passive, n * m.nv + d, 0.0)
    for j in range(n * f.n_motors, (n + 1) * f.n_motors):
        store(f.motor, j, 0.0)
    store(f.contact_start, n + 1, load(f.contact_start, n))


@kernel
def record_energy(m, s, own, t, f, n):
    """Energy, momentum and centre of mass of the state. Links are placed in memory that no step uses."""
    add_up(m, s, own, t)
    store(f.energy, N_ENERGIES * n, load(t.kinetic, 0) + load(t.drives, 0))
    store(f.energy, N_ENERGIES * n + 1, load(t.gravity, 0))
    store(f.energy, N_ENERGIES * n + 2, load(t.spring, 0))
    store(f.momentum, n, load(t.momentum, 0))
    store(f.com, n, load(t.com, 0))
    store(f.mass, n, load(t.mass, 0))


@kernel
def record_frame(m, s, w, o, c, r, b, own, t, f, time, dt):
    """One frame, for which there is room; `dt` is the length of the last step, or of its last substep."""
    n = load(f.count, 0)
    unit = load(f.unit, 0) if load(f.unit, 0) != 0.0 else dt
    store(f.time, n, time)
    for i in range(m.nq):
        store(f.q, n * m.nq + i, load(s.q, i))
    for d in range(m.nv):
        store(f.v, n * m.nv + d, load(s.v, d))
    if f.has_energy != 0:
        record_energy(m, s, own, t, f, n)
    if load(f.done, 0) == 0:
        record_nothing(m, f, n)
    else:
        if f.has_solver != 0:
            record_solver(o, r, f, n)
        if f.has_torques != 0:
            record_torques(m, w, b, f, n, dt)
            record_motors(r, b, f, n, unit)
        if f.has_contacts != 0:
            record_contacts(c, r, f, n, unit)
    store(f.count, 0, n + 1)
