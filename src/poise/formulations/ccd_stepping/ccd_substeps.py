"""Continuous collision detection (CCD): a step in which a shape moves far relative to its size is split into parts.

A few equal parts suffice if nothing moves far in them. For faster shapes, conservative advancement
(`collision.ccd.conservative_advancement`) finds the first time of impact, and the next part ends there. A part of
almost no length follows, in which the touching shapes bounce or stop; then the rest of the step is treated in the same
way. After IMPACTS impacts, or PARTS parts, the rest is one part without restitution, in which everything within reach
has speculative contacts. These are exact for straight paths, and may stop a shape that would have passed.

Free bodies move as the search assumes, with a constant twist about their origin. Links of trees do not: their parts are
so short that they rotate by TURN at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.collision.ccd.conservative_advancement import FLIGHTS, first_touches
from poise.collision.ccd.swept_aabb import sweeps, swept_pairs
from poise.collision.ccd.time_of_impact import NEAR
from poise.collision.collision_layout import MANIFOLD, PLACES, SHAPES
from poise.collision.detector import _place_links, _place_shapes
from poise.collision.narrowphase.pair_entries import manifold_block
from poise.constraints.row_store import STRIDES
from poise.formulations.ccd_stepping.motion_bounds import HASTE
from poise.formulations.ccd_stepping.touch_kernels import look_now, next_touches
from poise.formulations.step_status import ALL, DIVERGED, DONE, THE_REST
from poise.kernel.jit import entry
from poise.kernel.memory import F64, Block
from poise.model.joints import Primitive
from poise.model.shape_arrays import Solid

if TYPE_CHECKING:
    from poise.formulations.driver import Stepper

Array = NDArray[Any]
EVEN, LIMBS = 16, 64
"""Maximum number of equal parts; and if limbs, which move along arcs, are fast: many short parts respect joint limits
better than a few parts up to touches, at the same cost.
"""
TOO_FAST = 3e8
"""Speed above which no time of impact is computed; m/s."""
TOUCH = 1e-6
"""Gap that counts as touching; m."""
ALLOW = 0.05
"""Share of its least extent by which a touching shape may penetrate before the next search."""
STRIKE = 0.02
"""Approach speed above which a touch is a separate impact; m/s."""
IMPACTS, PARTS = 60, 200
"""Per step, at most."""
TURN = 0.1
"""Maximum rotation of a fast link of a tree in a part; rad."""
INSTANT = 1e-9
"""Displacement in a part of almost no length; m."""
CHANGED = ("erp", "creep", "quick", "margin", "close", "tolerance", "carry")
"""Options that differ in the parts of a step."""
LITTLE = 2.0**-200
"""Factor of the warm-start multipliers of an impact: practically zero, and exactly invertible."""

_first = entry(first_touches, SHAPES, PLACES, FLIGHTS, MANIFOLD, extra=("float64",) * 2, lanes=False)
_again = entry(next_touches, SHAPES, PLACES, FLIGHTS, MANIFOLD, extra=("float64",) * 3, lanes=False)
_now = entry(look_now, SHAPES, PLACES, FLIGHTS, MANIFOLD, lanes=False)


@dataclass(frozen=True)
class Moves:
    """Motion of each shape: its centre of rotation (n, 3), its twist there (n, 6), the arm to its own centre (n, 3)."""

    centre: Array
    twist: Array
    arm: Array


class Split:
    """Splits the steps of one world."""

    def __init__(self, stepper: Stepper) -> None:
        model, solids = stepper.model, stepper.model.solids
        self.stepper, self.model = stepper, model
        self.thin, self.moving = np.array(stepper.surfaces.thin), solids.link >= 0
        self.t = manifold_block(F64, {*solids.kind.tolist()})
        self.round = (solids.kind == Solid.SPHERE) & (np.abs(solids.position).max(axis=1, initial=0.0) == 0.0)
        parents = model.joint_body, model.body_link
        free = {
            int(parents[1][body]) for body, kind in zip(parents[0], model.joint_kinds, strict=True) if kind == "free"
        }
        self.bends = self.moving & ~np.isin(solids.link, sorted(free))
        self.fast = np.zeros(len(solids), np.bool_)

    # ---- the step ----------------------------------------------------------------------------------------------------

    def step(self, dt: float) -> int:
        """A step after its free motion; returns DONE, or DIVERGED with the state restored."""
        stepper, options, scratch = self.stepper, self.stepper.options, self.stepper.scratch
        s = stepper.space.s
        start, own = (s.q.copy(), s.v.copy()), stepper.own.copy()
        rows = stepper.read_rows()
        kept = {
            name: float(options.arrays[name][0]) for name in ("erp", "creep", "quick", "margin", "close", "tolerance")
        }
        carry = float(scratch.carry[0])
        paths = self._paths()
        wanted = dt * float(stepper.stats.haste[0]) / HASTE
        few = ceil(wanted) if wanted <= LIMBS else LIMBS + 1  # it may be infinite, or NaN
        end = DIVERGED
        stepper.extras.begin_parts(dt)
        try:
            if few <= EVEN or (few <= LIMBS and self._flings(dt)):
                end, parts = self._even_parts(dt, few, paths)
            else:
                end, parts = self._parts(dt, paths, kept)
        finally:
            stepper.extras.end_parts(end == DONE)
            scratch.parted[0], scratch.carry[...] = 0, carry
            for name, value in kept.items():
                options.arrays[name][...] = value
            for name, array in paths.items():
                stepper.space.stages.arrays[name][...] = array
        if end != DONE:
            s.q[...], s.v[...] = start
            stepper.own[...] = own
            stepper.write_rows(rows)
        stepper.parts = parts
        return end

    def _flings(self, dt: float) -> bool:
        """Whether a link of a tree other than its root is fast."""
        _, speed = self._moves(0.0)
        return bool((self.bends & (speed * dt > HASTE * self.thin)).any())

    def _even_parts(self, dt: float, parts: int, paths: dict[str, Array]) -> tuple[int, int]:
        """A number of equal parts, in none of which anything moves far."""
        stepper, length = self.stepper, dt / parts
        stepper.options.erp[...] /= parts
        for part in range(parts):
            stepper.scratch.carry[...] = 1.0 if part else 1.0 / parts
            self._follow(paths, part * length, (part + 1) * length, dt)
            # links are placed, as in the step loop: bodies must not follow written coordinates twice
            known = part == 0 and parts <= EVEN and not paths
            top = stepper.free_motion(length, THE_REST if known else ALL)
            # a non-finite step will end as DIVERGED
            end = stepper.finish(length, stepper.near + 2.0 * length * top if top < TOO_FAST else stepper.near)
            stepper.scratch.parted[0] = 1
            if end != DONE:
                break
        scale_multipliers(stepper.rows.now, parts)
        return end, parts

    def _parts(self, dt: float, paths: dict[str, Array], kept: dict[str, float]) -> tuple[int, int]:
        """Parts up to times of impact; returns the status of the last one, and their number."""
        stepper, options = self.stepper, self.stepper.options
        left, impacts, longest = dt, 0, 0.0
        for part in range(1, PARTS + 1):
            self._follow(paths, dt - left, dt, dt)
            top = stepper.free_motion(left)
            sound = top < TOO_FAST and bool(np.isfinite(stepper.space.w.a).all())
            length, speed = self._look(left) if sound else (left, 0.0)  # else it will end as DIVERGED
            strike = length == 0.0
            impacts += strike
            if part == PARTS or impacts > IMPACTS:
                length, speed, strike = left, top, False
                options.quick[...] = options.margin[...] = inf  # impacts may lead anywhere
                self.fast[...] = False
            elif strike:
                length = min(INSTANT / max(top, INSTANT / left), left)
            elif left - length < 1e-12 * dt:
                length = left
            options.close[...] = 0.0 if strike else kept["close"]
            options.creep[...] = 0.0 if strike else kept["creep"]
            options.erp[...] = kept["erp"] * (length / dt)
            options.tolerance[...] = kept["tolerance"] * 1.0 / max(1.0, top)
            self._follow(paths, dt - left, dt - left + length, dt)
            end = self._advance(length, speed, LITTLE if strike else length / dt, not strike and length >= longest)
            stepper.scratch.parted[0] = 1
            left, longest = left - length, max(longest, 0.0 if strike else length)
            if end != DONE or left <= 0.0:
                break
        return end, part

    def _advance(self, length: float, speed: float, share: float, remember: bool) -> int:
        """A part. The next warm start comes from its rows, scaled to the whole step, or else from the earlier ones."""
        stepper, rows = self.stepper, self.stepper.rows
        stepper.free_motion(length)
        scale_multipliers(rows.now, share)
        strike = share == LITTLE
        slack = TOUCH if strike else stepper.near + 2.0 * length * speed
        end = stepper.finish(length, slack, self._only_touching if strike else self._choose)
        if end != DONE:
            scale_multipliers(rows.now, 1.0 / share)
            return end
        scale_multipliers(rows.before, 1.0 / share)
        if remember:
            scale_multipliers(rows.now, 1.0 / share)
        else:
            rows.now, rows.before = rows.before, rows.now
        return end

    # ---- selection of contacts ---------------------------------------------------------------------------------------

    def _only_touching(self, c: Block) -> None:
        """Keep only touching contacts; their gaps become zero."""
        n = int(c.count[0])
        keep_contacts(c, c.gap[:n] <= TOUCH)
        self._close(c)

    def _choose(self, c: Block) -> None:
        """Of the pairs with a fast shape, keep those that touch: the search has shown that the others do not."""
        n = int(c.count[0])
        a, b, gap = c.a[:n], c.b[:n], c.gap[:n]
        pair = a.astype(np.int64) * len(self.fast) + b
        keep_contacts(c, ~(self.fast[a] | self.fast[b]) | np.isin(pair, pair[gap <= TOUCH]))
        self._close(c)

    def _close(self, c: Block) -> None:
        gap = c.gap[: int(c.count[0])]
        gap[(gap > 0.0) & (gap <= TOUCH)] = 0.0

    # ---- paths -------------------------------------------------------------------------------------------------------

    def _paths(self) -> dict[str, Array]:
        """The prescribed paths of the step."""
        stages = self.stepper.space.stages
        if not self.model.paths:
            return {}
        return {name: stages.arrays[name].copy() for name in ("path_q", "path_v", "path_a")}

    def _follow(self, paths: dict[str, Array], begin: float, end: float, dt: float) -> None:
        """Write a part of the prescribed paths, on straight lines from their beginnings to their ends."""
        for name, array in paths.items():
            of_step = array.reshape(3, -1)
            laid = self.stepper.space.stages.arrays[name].reshape(3, -1)
            for k, time in enumerate((begin, 0.5 * (begin + end), end)):
                laid[k] = of_step[0] + (of_step[2] - of_step[0]) * (time / dt)
                if name == "path_q":
                    self._normalize(laid[k])

    def _normalize(self, q: Array) -> None:
        model = self.model
        for kind, j in zip(model.primitive_kind, model.primitive_q_start, strict=True):
            if kind == Primitive.BALL and (size := np.linalg.norm(q[j : j + 4])) > 0.0:
                q[j : j + 4] /= size

    # ---- the first touch ---------------------------------------------------------------------------------------------

    def _look(self, left: float) -> tuple[float, float]:
        """Length of the next part, 0 for an impact; and the greatest speed of the shapes that are not fast."""
        now, speed = self._moves(0.0)
        self.fast = self.moving & (speed * left > HASTE * self.thin)
        slow = float(speed[~self.fast & self.moving].max(initial=0.0))
        if not self.fast.any():
            return left, slow
        length = left
        bent = self.fast & self.bends
        if bent.any():
            spin = float(np.linalg.norm(now.twist[bent, :3], axis=1).max())
            length = min(left, TURN / max(spin, TURN / left))
        ahead, _ = self._moves(length)
        pairs = self._pairs(now, ahead, length)
        f = self._flights(pairs, now)
        self._call(_now, f)
        touching = f.gap <= TOUCH
        if touching.any() and float(self._approach(f, now)[touching].max()) > STRIKE:
            return 0.0, slow
        length = self._refined(pairs[~touching], length)
        if touching.any():
            met = self._flights(pairs[touching], now)
            met.gap[...] = f.gap[touching]
            met.time[...] = np.minimum(self.thin[met.a], self.thin[met.b])
            self._call(_again, met, length, NEAR, ALLOW)
            length = min(length, float(met.time.min()))
        return length, slow

    def _refined(self, pairs: Array, length: float) -> float:
        """The first touch of separated pairs, up to a time.

        A part moves with the velocities at its end: the search is repeated with those at the end that it has found.
        """
        for _ in range(4):
            if not len(pairs):
                break
            f = self._flights(pairs, self._moves(length)[0])
            self._call(_first, f, length, NEAR)
            pairs = pairs[f.time <= length]
            if not len(pairs):
                break
            before, length = length, float(f.time.min())
            if before - length <= 1e-9 * before:
                break
        return length

    def _moves(self, dt: float) -> tuple[Moves, Array]:
        """Motion of the shapes with the velocities of the free motion after a time, and bounds of their speeds."""
        space, solids, c = self.stepper.space, self.model.solids, self.stepper.collider
        s, w = space.s, space.w
        v = s.v.copy()
        s.v[...] = v + dt * w.a
        _place_links[F64](space.m.handle, s.handle, w.handle)
        _place_shapes[F64](w.handle, c.g.handle, c.x.handle)
        s.v[...] = v
        link = np.maximum(solids.link, 0)
        r, twist = w.r[link].reshape(-1, 3), w.velocity[link].reshape(-1, 6).copy()
        twist[:, 3:] += np.cross(twist[:, :3], r)
        twist[~self.moving] = 0.0
        place = c.x.position.reshape(-1, 3).copy()
        centre = np.where(self.moving[:, None], w.origin[self.model.link_root[link]].reshape(-1, 3) + r, place)
        arm = place - centre
        twist[self.round & (np.abs(arm).max(axis=1) == 0.0), :3] = 0.0
        spin = np.linalg.norm(twist[:, :3], axis=1)
        reach = np.where(self.moving, solids.reach, 0.0)
        turning = np.where(spin > 0.0, spin * (np.linalg.norm(arm, axis=1) + reach), 0.0)
        return Moves(centre, twist, arm), np.linalg.norm(twist[:, 3:], axis=1) + turning

    def _pairs(self, now: Moves, ahead: Moves, dt: float) -> Array:
        """Pairs of a fast shape and a shape that it may touch."""
        x, solids = self.stepper.collider.x, self.model.solids
        place = x.position.reshape(-1, 3)
        change = float(np.abs(ahead.twist[:, 3:] - now.twist[:, 3:]).max(initial=0.0)) * dt
        moves = sweeps(place, solids.reach, ahead.arm, ahead.twist, dt)
        pairs = swept_pairs(self.model, x.rotation.reshape(-1, 3, 3)[:, :, 2], moves, TOUCH + 4.0 * change)
        return pairs[self.fast[pairs].any(axis=1)]

    def _flights(self, pairs: Array, moves: Moves) -> Block:
        n = len(pairs)
        return FLIGHTS.block(
            F64,
            n_pairs=n,
            a=np.ascontiguousarray(pairs[:, 0]),
            b=np.ascontiguousarray(pairs[:, 1]),
            centre=moves.centre,
            twist=moves.twist,
            arm=np.linalg.norm(moves.arm, axis=1),
            **dict.fromkeys(("time", "gap", "normal", "point"), n),
        )

    def _approach(self, f: Block, moves: Moves) -> Array:
        """(n,) approach speeds of pairs at their closest points; m/s."""
        point, speed = f.point.reshape(-1, 3), []
        for shape in (f.a, f.b):
            twist = moves.twist[shape]
            speed.append(twist[:, 3:] + np.cross(twist[:, :3], point - moves.centre[shape]))
        return np.asarray(np.einsum("ni,ni->n", f.normal.reshape(-1, 3), speed[0] - speed[1]))

    def _call(self, run: Any, f: Block, *numbers: float) -> None:
        if len(f.time):
            c = self.stepper.collider
            run[F64](c.g.handle, c.x.handle, f.handle, self.t.handle, *numbers)


def keep_contacts(c: Block, keep: Array) -> None:
    """Remove the other contacts; the order stays."""
    n = len(keep)
    for name in ("id", "feature", "a", "b", "gap", "normal", "point"):
        array = c.arrays[name]
        array[: int(keep.sum())] = array[:n][keep]
    c.count[0] = int(keep.sum())


def scale_multipliers(rows: Block, share: float) -> None:
    """Scale the multipliers of all rows."""
    for first, count, stride in zip(rows.first.tolist(), rows.count.tolist(), STRIDES, strict=True):
        rows.lam[first : first + count * stride] *= share
