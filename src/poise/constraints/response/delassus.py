"""The Delassus matrix K = J M⁻¹ Jᵀ of rows on a tree (KOK eq. 10), by four methods.

    gram           YᵀY of the forces propagated to the root; rows in lanes         what simulations use
    deltas         an acceleration delta a row                                     KOK §4.3
    test_forces    m + 1 calls of the articulated-body algorithm                   KOK §4.2
    jacobians      J, and a factorization of the mass matrix                       textbooks

and KOK §4.1's single constraint, as a function to learn from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.constraints.response import delassus_methods
from poise.constraints.response.delassus_kernels import FLOW, SYSTEM
from poise.constraints.response.row_system import System, moving, see
from poise.constraints.row_store import STORE
from poise.constraints.row_validation import checked_world
from poise.constraints.rows import Rows
from poise.dynamics.argument_checks import check_result
from poise.dynamics.dynamics_layout import INPUT, MODEL, STATE, WORK
from poise.dynamics.functions import forward_dynamics, mass_matrix
from poise.dynamics.state_queries import jacobian
from poise.kernel.blas import few_blas_threads
from poise.kernel.jit import entry
from poise.kernel.memory import F64
from poise.model.model import Model

Array = NDArray[np.float64]

_TREE = (MODEL, STATE, INPUT, WORK, STORE, SYSTEM)
_by_test_forces = entry(delassus_methods.by_test_forces, *_TREE, extra=("float64",), lanes=False)
_by_deltas = entry(delassus_methods.by_deltas, MODEL, WORK, STORE, SYSTEM, FLOW, lanes=False)


@few_blas_threads
def constraint_matrix(rows: Rows, q: ArrayLike, method: str = "gram") -> Array:
    """(m, m) Delassus matrix of rows at a pose; `method` is gram, deltas, test_forces or jacobians.

    >>> import poise
    >>> from poise.constraints.rows import Rows
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> rows = Rows(scene.compile())
    >>> _ = rows.add(id=0, b="ball", Jb=(0, 0, 0, 0, 0, 1))
    >>> [round(float(constraint_matrix(rows, rows.model.q_rest, how)[0, 0]), 9) for how in METHODS]
    [0.5, 0.5, 0.5, 0.5]
    """
    if method not in METHODS:
        raise ValueError(f"method is {method!r}; it must be one of {', '.join(METHODS)}")
    if rows.width != F64:
        raise ValueError(f"rows of {rows.width}; this is for one world in float64 (see `row_system.see` for lanes)")
    return METHODS[method](rows, q)


def _gram(rows: Rows, q: ArrayLike) -> Array:
    return see(rows, q).A


def _deltas(rows: Rows, q: ArrayLike) -> Array:
    system, space = System(rows, lanes=False), moving(rows, {"q": q}, 0.0)
    handles = (space.m.handle, space.w.handle, rows.now.handle, system.t.handle, system.flow.handle)
    _by_deltas[F64](*handles)
    return system.matrix()


def _test_forces(rows: Rows, q: ArrayLike, size: float = 1.0) -> Array:
    system, space = System(rows, lanes=False), moving(rows, {"q": q}, 0.0)
    space.x.set_count("n_forces", 1)
    space.x.force[...] = 0.0
    handles = (space.m.handle, space.s.handle, space.x.handle, space.w.handle, rows.now.handle, system.t.handle)
    _by_test_forces[F64](*handles, size)
    return system.matrix()


def _jacobians(rows: Rows, q: ArrayLike) -> Array:
    model = rows.model
    free = model.dof_prescribed == 0
    J = row_jacobian(rows, q)[:, free]
    M = mass_matrix(model, q)[np.ix_(free, free)]
    return np.asarray(J @ np.linalg.solve(M, J.T))


METHODS: dict[str, Callable[[Rows, ArrayLike], Array]] = {
    "gram": _gram,
    "deltas": _deltas,
    "test_forces": _test_forces,
    "jacobians": _jacobians,
}


def row_jacobian(rows: Rows, q: ArrayLike, world: int = 0) -> Array:
    """(m, nv) the rows' Jacobian on all degrees of freedom, from the Jacobians of bodies.

    >>> import poise
    >>> from poise.constraints.rows import Rows
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1), name="ball")
    >>> rows = Rows(scene.compile())
    >>> _ = rows.add(id=0, b="ball", Jb=(0, 0, 0, 0, 0, 1))
    >>> row_jacobian(rows, rows.model.q_rest).tolist()
    [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]
    """
    model, listing = rows.model, rows.listing()
    checked_world(world, rows.width.lanes)
    bodies: dict[int, Array] = {}
    J = np.zeros((listing.size, model.nv))
    for k, slot in enumerate(listing.slots):
        for body, six in rows.body_terms(int(slot), world):
            if body not in bodies:
                bodies[body] = jacobian(model, q, body, model.body_com[body]).J
            J[k] += six @ bodies[body]
        for dof, coefficient in rows.dof_terms(int(slot), world):
            J[k, dof] += coefficient
    return J


@dataclass(frozen=True)
class SingleConstraint:
    """Results of KOK §4.1."""

    force: float
    """f^c: the force, of the test force's kind, that makes h zero; N or N·m."""
    k: float
    """Net effect on h of a unit force (eq. 8)."""
    default: float
    """h(q̈⁰)"""
    accelerations: NDArray[Any]
    """(nv,) with the force applied."""


def single_constraint(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    h: Callable[[NDArray[Any]], float],
    tau: ArrayLike | None = None,
    *,
    test_tau: ArrayLike | None = None,
    test_forces: ArrayLike | None = None,
    forces: ArrayLike | None = None,
) -> SingleConstraint:
    """The force that makes a linear function h(q̈) of the accelerations zero, by two calls of the dynamics (KOK §4.1).

    `h` may be affine, as the acceleration of a joint less its target. The test force is `test_tau` (nv,) and
    `test_forces` (n_bodies, 6): any force that has an effect on h.

    >>> import numpy as np, poise
    >>> scene = poise.Scene()
    >>> _ = scene.add(poise.sphere(0.1, mass=2.0), name="ball")
    >>> model = scene.compile()
    >>> found = single_constraint(model, model.q_rest, np.zeros(6), lambda a: a[2] - 1.0, test_tau=np.eye(6)[2])
    >>> round(found.force, 6), round(float(found.accelerations[2]), 6)  # 2 kg at 1 m/s² against gravity
    (21.62, 1.0)
    """
    if test_tau is None and test_forces is None:
        raise ValueError("give a test force: test_tau, test_forces, or both")

    def accelerations(size: float) -> NDArray[Any]:
        pushes = [_sum(tau, test_tau, size), _sum(forces, test_forces, size)]
        return forward_dynamics(model, q, v, pushes[0], forces=pushes[1])

    default = float(h(accelerations(0.0)))
    k = float(h(accelerations(1.0))) - default
    if not np.isfinite([default, k]).all():
        raise ValueError(f"h is {default} without the test force, and {default + k} with it; it must be finite")
    if abs(k) <= 1e-12 * max(1.0, abs(default)):
        raise ValueError("the test force has no effect on h: choose one that acts along it")
    force = -default / k
    return SingleConstraint(force, k, default, check_result(model, accelerations(force)))


def _sum(given: ArrayLike | None, test: ArrayLike | None, size: float) -> NDArray[Any] | None:
    """given + size · test."""
    if test is None:
        return None if given is None else np.asarray(given, np.float64)
    pushed = size * np.asarray(test, np.float64)
    return pushed if given is None else np.asarray(given, np.float64) + pushed
