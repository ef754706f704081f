"""Ways to the matrix of a list of point rows, K = J M⁻¹ Jᵀ: kernels in loops, and the blocks that they work on.

A row is a unit force on body B at a point, and its opposite on body A; K[i, j] is what the force of row j changes in
the acceleration of row i (KOK eqs. 5 to 9).

    calls         a whole forward dynamics for every row, and one without (KOK §4.2: m + 1 calls)
    cached        the same, with what depends on the state alone computed once
    dense         M as a matrix, Cholesky and products by LAPACK and BLAS, J given
    deltas        acceleration deltas (KOK §4.3), one row after another
    delta rows    J, M⁻¹ Jᵀ for eight rows an instruction, and their product
    delta worlds  deltas of eight worlds an instruction
    rows          what Poise does (`poise.constraints.tree`): half a delta a row, then products of what it left behind
    lanes         the same for eight rows an instruction
    worlds        the same for eight worlds an instruction
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from _matrix_kernels import (
    CACHED,
    CALLS,
    DELTAS,
    ENGINE_LANES,
    ENGINE_MIXED,
    ENGINE_ROWS,
    GROUPS,
    LANES,
    MIXED,
    POINTS,
)
from _trees import States, fill, filled, handles

from poise import dynamics
from poise.constraints.rows import Rows
from poise.constraints.tree_rows import System
from poise.kernel.jit import Entry
from poise.kernel.memory import F64, F64X8, Block, Shared, Width
from poise.model.model import Model


@dataclass(frozen=True)
class PointRows:
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

    def __init__(self, model: Model, states: States, rows: PointRows, width: Width = F64) -> None:
        self.states, self.space = states, filled(model, width, states)
        self.m, self.nv = len(rows.a), model.nv
        self.padded = -(-self.m // 8) * 8
        wrenches = [_wrenches(model, states.q[k % len(states.q)], rows, k % len(states.q)) for k in range(width.lanes)]
        link = np.append(model.body_link, -1)
        self.points: Block = POINTS.block(
            width,
            n_rows=self.m,
            n_padded=self.padded,
            body_a=rows.a.astype(np.int32),
            body_b=rows.b.astype(np.int32),
            link_a=link[rows.a].astype(np.int32),
            link_b=link[rows.b].astype(np.int32),
            **{name: _side_by_side([one[name] for one in wrenches], width) for name in ("pull", "push_a", "push_b")},
            base=self.m,
            J=model.nv * self.padded,
            K=self.padded**2,
        )
        self.space.x.set_count("n_forces", 1)

    def groups(self) -> Block:
        """The same memory as lanes of rows."""
        J, K = (Shared(self.points.arrays[name].reshape(-1, 8)) for name in ("J", "K"))
        return GROUPS.block(F64X8, answer=self.nv * self.padded // 8, J=J, K=K)

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

    def __init__(self, model: Model, states: States, rows: PointRows) -> None:
        last = States(states.q[-1:], states.v[-1:], states.tau[-1:])
        own = PointRows(rows.a, rows.b, rows.point[-1:], rows.direction[-1:])
        self.model = model
        self.one, self.many = Blocks(model, last, own), Blocks(model, states, rows, F64X8)
        self.stores = {F64: stored(model, last, own, F64), F64X8: stored(model, states, rows, F64X8)}
        self.J = jacobian(model, last.q[0], own)
        self.K = np.zeros((1, self.one.m, self.one.m))

    def all(self) -> list[Way]:
        """Every way."""
        tests = [self._test("calls", "m + 1 calls", CALLS), self._test("cached", "m + 1 calls, cached", CACHED)]
        dense = Way("dense", "dense, NumPy", self._dense, self.one, lambda: self.K)
        deltas = [
            self._deltas("deltas", "deltas", self.one),
            self._deltas("delta worlds", "deltas, 8 worlds", self.many),
        ]
        rows = self._engine("rows", "half deltas", self.one, lanes=False)
        lanes = self._engine("lanes", "half deltas, 8 rows", self.one, lanes=True)
        worlds = self._engine("worlds", "half deltas, 8 worlds", self.many, lanes=False)
        return [*tests, dense, deltas[0], self._delta_rows(), deltas[1], rows, lanes, worlds]

    def _test(self, name: str, what: str, loop: Entry) -> Way:
        call, given = loop[F64], (*handles(self.one.space), self.one.points.handle)
        return Way(name, what, lambda n: call(*given, n), self.one, self.one.matrices)

    def _deltas(self, name: str, what: str, blocks: Blocks) -> Way:
        width = blocks.space.width
        call, room = DELTAS[width], blocks.space.response(width)
        given = (*handles(blocks.space), room.handle, blocks.points.handle)
        return Way(name, what, lambda n: call(*given, n), blocks, blocks.matrices)

    def _delta_rows(self) -> Way:
        blocks, call = self.one, LANES[MIXED]
        room, groups = blocks.space.response(F64X8), blocks.groups()
        given = (*handles(blocks.space), room.handle, blocks.points.handle, groups.handle)
        return Way("delta rows", "deltas, 8 rows", lambda n: call(*given, n), blocks, blocks.matrices)

    def _engine(self, name: str, what: str, blocks: Blocks, *, lanes: bool) -> Way:
        width = blocks.space.width
        rows = self.stores[width]
        system = System(rows, lanes)
        given = [*handles(blocks.space), rows.now.handle, system.t.handle, system.flow.handle]
        given += [system.plain.handle] if lanes else []
        call = ENGINE_LANES[ENGINE_MIXED] if lanes else ENGINE_ROWS[width]

        def made() -> np.ndarray:
            return system.matrix().reshape(width.lanes, blocks.m, blocks.m)

        return Way(name, what, lambda n: call(*given, n), blocks, made)

    def _dense(self, n: int) -> None:
        q = self.one.states.q[0]
        for _ in range(n):
            root = np.linalg.inv(np.linalg.cholesky(dynamics.mass_matrix(self.model, q)))
            half = root @ self.J.T
            self.K[0] = half.T @ half


def _wrenches(model: Model, q: np.ndarray, rows: PointRows, world: int) -> dict[str, np.ndarray]:
    """(m, 6) each: about O on B, and about the bodies' origins. O is the origin of the root, which is free."""
    place = dynamics.bodies(model, q).position
    place = np.concatenate([place, np.zeros((1, 3))])  # the world's, last
    point, force = rows.point[world], rows.direction[world]
    root = place[int(np.flatnonzero(model.body_link == 0)[0])]

    def about(origin: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.concatenate([np.cross(point - origin, f), f], axis=1)

    return {"pull": about(root, force), "push_a": about(place[rows.a], -force), "push_b": about(place[rows.b], force)}


def stored(model: Model, states: States, rows: PointRows, width: Width) -> Rows:
    """The same rows in Poise's own store: Jacobians at the centres of mass."""
    store = Rows(model, width)
    for world in range(width.lanes):
        k = world % len(states.q)
        poses = dynamics.bodies(model, states.q[k])
        centres = poses.position + np.einsum("nij,nj->ni", poses.rotation, model.body_com)
        for i, (a, b) in enumerate(zip(rows.a.tolist(), rows.b.tolist(), strict=True)):
            point, force = rows.point[k, i], rows.direction[k, i]
            Ja, Jb = (np.concatenate([np.cross(point - centres[body], force), force]) for body in (a, b))
            store.add(id=i, a=a, Ja=-Ja, b=b, Jb=Jb, world=world)
    return store


def _side_by_side(arrays: list[np.ndarray], width: Width) -> np.ndarray:
    return arrays[0] if width.lanes == 1 else np.stack(arrays, axis=-1)


def reference(model: Model, q: np.ndarray, rows: PointRows, world: int = 0) -> np.ndarray:
    """(m, m) J M⁻¹ Jᵀ in NumPy."""
    J = jacobian(model, q, rows, world)
    return np.asarray(J @ np.linalg.solve(dynamics.mass_matrix(model, q), J.T))


def jacobian(model: Model, q: np.ndarray, rows: PointRows, world: int = 0) -> np.ndarray:
    """(m, nv) velocity of B's point less that of A's, along the rows' directions."""
    poses = dynamics.bodies(model, q)
    J = np.zeros((len(rows.a), model.nv))
    for i, (a, b) in enumerate(zip(rows.a.tolist(), rows.b.tolist(), strict=True)):
        for body, sign in ((a, -1.0), (b, 1.0)):
            if body >= 0:
                local = poses.rotation[body].T @ (rows.point[world, i] - poses.position[body])
                J[i] += sign * rows.direction[world, i] @ dynamics.jacobian(model, q, body, local).J[3:]
    return J
