"""Ways to the matrix of a list of point rows, K = J M⁻¹ Jᵀ: kernels in loops, and the blocks that they work on.

A row is a unit force on body B at a point, and its opposite on body A; K[i, j] is what the force of row j changes in
the acceleration of row i (KOK eqs. 5 to 9).

    calls     a whole forward dynamics for every row, and one without (KOK §4.2: m + 1 calls)
    cached    the same, with what depends on the state alone computed once
    deltas    acceleration deltas (KOK §4.3), one row after another
    worlds    the same in lanes, one world a lane
    dense     M as a matrix, Cholesky and products by LAPACK and BLAS
    lanes     J, and M⁻¹ Jᵀ for eight rows an instruction, then their product
    factors   J, then L⁻¹ Jᵀ for eight rows an instruction, then K = Σ u uᵀ/d over the degrees of freedom: what the
              inbound half of a delta leaves behind suffices, as M = L D Lᵀ in it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from _matrix_kernels import CACHED, CALLS, DELTAS, FACTORS, GROUPS, LANES, MIXED, POINTS
from _trees import States, fill, filled, handles

from poise import dynamics
from poise.kernel.memory import F64, F64X8, Block, Shared, Width
from poise.model.model import Model


@dataclass(frozen=True)
class Rows:
    """Unit forces at points, in the world, of one state or of several that have the same bodies in touch."""

    a: np.ndarray
    """(m,) bodies; −1 is the world."""
    b: np.ndarray
    point: np.ndarray
    """(worlds, m, 3) m."""
    direction: np.ndarray
    """(worlds, m, 3) of the force on B."""


class Blocks:
    """States and rows in blocks of one width, ready for the kernels."""

    def __init__(self, model: Model, states: States, rows: Rows, width: Width = F64) -> None:
        self.states, self.space = states, filled(model, width, states)
        self.m, self.nv = len(rows.a), model.nv
        self.padded = -(-self.m // 8) * 8
        wrenches = [_wrenches(model, states.q[k % len(states.q)], rows, k % len(states.q)) for k in range(width.lanes)]
        link = np.append(model.body_link, -1)
        room = dict.fromkeys(("J", "V"), model.nv * self.padded) | {"K": self.padded**2, "base": self.m}
        self.points: Block = POINTS.block(
            width,
            n_rows=self.m,
            n_padded=self.padded,
            body_a=rows.a.astype(np.int32),
            body_b=rows.b.astype(np.int32),
            link_a=link[rows.a].astype(np.int32),
            link_b=link[rows.b].astype(np.int32),
            **{name: _side_by_side([one[name] for one in wrenches], width) for name in ("pull", "push_a", "push_b")},
            **room,
        )
        self.space.x.set_count("n_forces", 1)

    def groups(self) -> Block:
        """The same memory as lanes of rows."""
        shared = {name: Shared(self.points.arrays[name].reshape(-1, 8)) for name in ("J", "V", "K")}
        return GROUPS.block(F64X8, U=self.nv * self.padded // 8, **shared)

    def prepare(self) -> None:
        """Begin with the states again."""
        fill(self.space, self.states)

    def matrices(self) -> np.ndarray:
        """(worlds, m, m) what was built last."""
        K = self.points.K.reshape(self.padded, self.padded, -1)
        return np.moveaxis(K, -1, 0)[:, : self.m, : self.m].copy()


@dataclass(frozen=True)
class Way:
    """A way to the matrix, to be timed."""

    name: str
    what: str
    run: Callable[[int], object]
    """From the state to the matrix, n times."""
    blocks: Blocks
    made: Callable[[], np.ndarray]
    """(worlds, m, m) what was built last."""

    @property
    def worlds(self) -> int:
        """Matrices that one run builds."""
        return self.blocks.space.width.lanes

    def residual(self, truth: Sequence[np.ndarray]) -> float:
        """Greatest difference from the true matrices (those of the last worlds), of the greatest entry."""
        self.blocks.prepare()
        self.blocks.points.K[...] = np.nan
        self.run(1)
        pairs = zip(self.made(), truth[-self.worlds :], strict=True)
        return max(float(np.abs(K - right).max() / np.abs(right).max()) for K, right in pairs)


class Ways:
    """All ways for some rows: of the last state alone, or of eight states in lanes."""

    def __init__(self, model: Model, states: States, rows: Rows) -> None:
        last = States(states.q[-1:], states.v[-1:], states.tau[-1:])
        own = Rows(rows.a, rows.b, rows.point[-1:], rows.direction[-1:])
        self.model = model
        self.one, self.many = Blocks(model, last, own), Blocks(model, states, rows, F64X8)
        self.single, self.lanes = self.one.space.response(F64), self.one.space.response(F64X8)
        self.worlds = self.many.space.response(F64X8)
        self.groups = self.one.groups()
        self.J = jacobian(model, last.q[0], own)
        self.K = np.zeros((1, self.one.m, self.one.m))

    def way(self, name: str) -> Way:
        """One of them."""
        one, many = self.one, self.many
        h, p = (*handles(one.space), one.points.handle), one.points.handle
        worlds = (*handles(many.space), self.worlds.handle, many.points.handle)
        rows = (*handles(one.space), self.lanes.handle, p, self.groups.handle)
        known: dict[str, tuple[str, Callable[[int], object]]] = {
            "calls": ("m + 1 forward dynamics", lambda n: CALLS[F64](*h, n)),
            "cached": ("m + 1, cached", lambda n: CACHED[F64](*h, n)),
            "deltas": ("deltas", lambda n: DELTAS[F64](*h[:4], self.single.handle, p, n)),
            "lanes": ("J M⁻¹ Jᵀ, 8 rows", lambda n: LANES[MIXED](*rows, n)),
            "factors": ("Σ u uᵀ/d, 8 rows", lambda n: FACTORS[MIXED](*rows, n)),
            "worlds": ("deltas, 8 worlds", lambda n: DELTAS[F64X8](*worlds, n)),
            "dense": ("dense, NumPy", self._dense),
        }
        what, run = known[name]
        if name == "dense":
            return Way(name, what, run, one, lambda: self.K)
        blocks = many if name == "worlds" else one
        return Way(name, what, run, blocks, blocks.matrices)

    def all(self) -> list[Way]:
        """Every way."""
        return [self.way(name) for name in ("calls", "cached", "dense", "deltas", "lanes", "factors", "worlds")]

    def _dense(self, n: int) -> None:
        q = self.one.states.q[0]
        for _ in range(n):
            root = np.linalg.inv(np.linalg.cholesky(dynamics.mass_matrix(self.model, q)))
            half = root @ self.J.T
            self.K[0] = half.T @ half


def _wrenches(model: Model, q: np.ndarray, rows: Rows, world: int) -> dict[str, np.ndarray]:
    """(m, 6) each: about O on B, and about the bodies' origins. O is the origin of the root, which is free."""
    place = dynamics.bodies(model, q).position
    place = np.concatenate([place, np.zeros((1, 3))])  # the world's, last
    point, force = rows.point[world], rows.direction[world]
    root = place[int(np.flatnonzero(model.body_link == 0)[0])]

    def about(origin: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.concatenate([np.cross(point - origin, f), f], axis=1)

    return {"pull": about(root, force), "push_a": about(place[rows.a], -force), "push_b": about(place[rows.b], force)}


def _side_by_side(arrays: list[np.ndarray], width: Width) -> np.ndarray:
    return arrays[0] if width.lanes == 1 else np.stack(arrays, axis=-1)


def reference(model: Model, q: np.ndarray, rows: Rows, world: int = 0) -> np.ndarray:
    """(m, m) J M⁻¹ Jᵀ in NumPy."""
    J = jacobian(model, q, rows, world)
    return np.asarray(J @ np.linalg.solve(dynamics.mass_matrix(model, q), J.T))


def jacobian(model: Model, q: np.ndarray, rows: Rows, world: int = 0) -> np.ndarray:
    """(m, nv) velocity of B's point less that of A's, along the rows' directions."""
    poses = dynamics.bodies(model, q)
    J = np.zeros((len(rows.a), model.nv))
    for i, (a, b) in enumerate(zip(rows.a.tolist(), rows.b.tolist(), strict=True)):
        for body, sign in ((a, -1.0), (b, 1.0)):
            if body >= 0:
                local = poses.rotation[body].T @ (rows.point[world, i] - poses.position[body])
                J[i] += sign * rows.direction[world, i] @ dynamics.jacobian(model, q, body, local).J[3:]
    return J
