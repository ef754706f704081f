"""Rows of a state at acceleration level: those of the velocity level, with their γ.

γ of contacts comes from the curvature of their surfaces (`collision.contact_acceleration_kernels`); rows of loop joints
and couplings have their own. For other rows with a variable Jacobian (swings and twists of balls), γ is the rate of J v
along the current velocity, by central differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.kinds.joint_limit import CODES
from poise.constraints.response.row_system import System
from poise.constraints.response.row_velocity import ACCELERATION
from poise.constraints.row_store import CONTACT, SINGLE
from poise.constraints.rows import Rows
from poise.formulations.acceleration_level.acceleration_entries import EMIT
from poise.formulations.acceleration_level.acceleration_tracking import TRACK, Track
from poise.formulations.stages.immovable_rows import LEAST, SMALL
from poise.formulations.stages.redundant_rows import OFF
from poise.kernel.memory import F64
from poise.solve.rank import redundant_rows, shortest

if TYPE_CHECKING:
    from poise.formulations.acceleration_level.state_adapters import Carrier
    from poise.formulations.driver import Stepper

Array = NDArray[Any]
SHORT = 1e-9
"""Length of the step for which rows are built: short enough that they depend on the current state only; s."""
ALONG = 1e-4
"""Displacement along the velocity over which J is differentiated; rad or m."""
STEEPEST = 10.0
"""Maximum speed of a contact along an edge, relative to that of the bodies."""
KEPT = 64
"""Maximum number of systems in the cache."""
KIND = 1 << 32
"""Factor of the keys of blocks: kind · KIND + id."""


@dataclass
class Redundant:
    """Rows of closures, and which of them are redundant; see `solve.rank`."""

    rows: Array
    """(c,) indices among all rows."""
    left: Array
    """(c,) whether a row is redundant."""
    A: Array
    """(c, c)"""
    weight: Array
    """(c,)"""
    blur: float

    def is_left(self, m: int) -> Array:
        """(m,) whether each row is redundant."""
        out = np.zeros(m, bool)
        out[self.rows] = self.left
        return out

    def share_load(self, lam: Array) -> Array:
        """(m,) multipliers of least norm with the same effect of the closures."""
        if not self.left.any():
            return lam
        out = lam.copy()
        out[self.rows] = shortest(self.A, self.weight, lam[self.rows], self.blur)
        return out


@dataclass
class Seen:
    """Rows of a state: m rows in B blocks."""

    keys: Array
    """(B,) kind and id."""
    kinds: Array
    """(B,)"""
    starts: Array
    """(B,) first row of each block."""
    slots: Array
    """(m,) slots of the rows in the store."""
    phi: Array
    """(B,) error of the first row; m or rad."""
    speed: Array
    """(m,) J v; m/s or rad/s."""
    pull: Array
    """(m,) J a_free + γ."""
    free: Array
    """(m,) J a_free."""
    A: Array
    """(m, m)"""
    a_free: Array
    """(nv,)"""
    one: dict[str, Array]
    """Fields of the rows by their names in the store, (m,)."""
    axes: Array
    """(m, 3) directions of the rows of contacts."""
    pairs: Array
    """(B,) key of the two shapes of a contact; −1 for other blocks."""
    system: System
    redundant: Redundant

    @property
    def sizes(self) -> Array:
        """(B,) number of rows of each block."""
        return np.diff(self.starts, append=len(self.speed))

    @property
    def one_sided(self) -> Array:
        """(B,) whether a block only pushes: contacts, limits."""
        first = self.starts
        single = (self.kinds == SINGLE) & (self.one["lo"][first] >= 0.0) & (self.one["hi"][first] == np.inf)
        return (self.kinds == CONTACT) | single

    @property
    def closures(self) -> Array:
        """(B,) bilateral rows without bounds whose errors are corrected: loop joints, couplings."""
        one, first = self.one, self.starts
        endless = (one["lo"][first] == -np.inf) & (one["hi"][first] == np.inf) & (self.kinds == SINGLE)
        return np.asarray(endless & (one["erp"][first] > 0.0))

    def approach(self) -> Array:
        """(B,) velocities of the first rows of blocks."""
        return self.speed[self.starts]


_FIELDS = ("phi", "target", "bounce", "a_ref", "lo", "hi", "erp", "cfm", "bound", "slide", "strike")


class Looker:
    """Builds the rows of the state in a stepper's workspace, and evaluates them with the free motion."""

    def __init__(self, stepper: Stepper, carrier: Carrier) -> None:
        self.looks = 0
        """How often rows were built."""
        self.stepper, self.model, self.carrier = stepper, stepper.model, carrier
        self.rows = Rows(stepper.model, F64)
        self.tracks: Sequence[Track] = ()
        self.lay_forces: Callable[[float], None] | None = None
        """Writes forces that depend on time and state, if there are any."""
        self._systems: dict[tuple[int, ...], System] = {}
        self.last = System(self.rows)

    # ---- the state ---------------------------------------------------------------------------------------------------

    def place(self, time: float) -> None:
        """Move kinematic bodies to their paths at a time."""
        space, model = self.stepper.space, self.model
        for joint, path in model.paths:
            j, d, point = int(model.joint_q_start[joint]), int(model.joint_v_start[joint]), path(time)
            y = space.stages
            y.path_q[j : j + 7] = (*point.position, *point.quat_wxyz)
            y.path_v[d : d + 6] = (*point.velocity, *point.angular_velocity)
            y.path_a[d : d + 6] = (*point.acceleration, *point.angular_acceleration)
            space.s.q[j : j + 7], space.s.v[d : d + 6] = y.path_q[j : j + 7], y.path_v[d : d + 6]

    def act(self, time: float) -> None:
        """Write the forces of the current state."""
        if self.lay_forces is not None:
            self.carrier.begin()  # coordinates of the bodies' current states
            self.lay_forces(time)

    # ---- its rows ----------------------------------------------------------------------------------------------------

    def look(self, time: float, implicit: float = 0.0) -> Seen:
        """The rows of the current state; springs, dampers and drives are implicit over a time `implicit` (s)."""
        stepper, space = self.stepper, self.stepper.space
        self.place(time)
        self.act(time)
        stepper.free_motion(implicit)
        if not (np.isfinite(space.w.a).all() and np.isfinite(space.s.q).all() and np.isfinite(space.s.v).all()):
            raise FloatingPointError("the free motion is not finite")
        self._emit()
        self._add_tracks(time)
        if len(self._turning()):
            self._bend_rows(time, implicit)
        return self._seen()

    def _emit(self) -> None:
        """Rows of everything that is near now, as at velocity level for a step of nearly zero length."""
        stepper, rows, space = self.stepper, self.rows, self.stepper.space
        self.looks += 1
        stepper.collider.find(space, stepper.near)
        stepper.collider.bend(space)
        stepper.flow.a[...], stepper.flow.acceleration[...] = 0.0, 0.0
        if stepper.extras.busy or stepper.driven:
            stepper.extras.emit(space, SHORT, SHORT, 1.0)
        options, margin = stepper.options, stepper.options.margin[0]
        options.margin[...] = stepper.near
        while True:
            data = stepper.data_of(rows.now, rows.before)
            EMIT[F64](space.m.handle, data.handle, options.handle, SHORT, 0)
            if not rows.full():
                break
            rows.grow()
        options.margin[...] = margin
        self._bend_contacts()

    def _add_tracks(self, time: float) -> None:
        s = self.stepper.space.s
        for track in self.tracks:
            for d, a in zip(track.dofs.tolist(), track.accelerations(time, s.q, s.v).tolist(), strict=True):
                self.rows.add(id=CODES * d + TRACK, dof=d, a_ref=a, erp=0.0)

    def _bend_contacts(self) -> None:
        """γ of contacts, along the normal and the tangents."""
        now, c = self.rows.now, self.stepper.collider.c
        count, first = int(now.count[CONTACT]), int(now.first[CONTACT])
        if not count:
            return
        slots = first + np.arange(3 * count)
        places = self._contact_places(now.id[slots[::3]])
        bend = c.bend[places].reshape(-1, 3)
        bend = np.where((np.linalg.norm(bend, axis=1) <= self._most_bend(places))[:, None], bend, 0.0)
        now.gamma[slots] = np.einsum("nkj,nj->nk", now.Jb[slots].reshape(count, 3, 6)[:, :, 3:], bend).ravel()

    def _most_bend(self, places: Array) -> Array:
        """(n,) maximum magnitude of γ of a contact, exceeded by nearly parallel edges only: there contacts run off."""
        stepper, solids, w = self.stepper, self.model.solids, self.stepper.space.w
        c, thin = stepper.collider.c, np.array(stepper.surfaces.thin)
        point = c.point[places].reshape(-1, 3)
        speed, spin, reach = np.zeros_like(point), np.zeros(len(places)), np.zeros(len(places))
        least = np.minimum(thin[c.a[places]], thin[c.b[places]])
        for sign, shape in ((-1.0, c.a[places]), (1.0, c.b[places])):
            moves, link = solids.link[shape] >= 0, np.maximum(solids.link[shape], 0)
            velocity = np.where(moves[:, None], w.velocity[link].reshape(-1, 6), 0.0)
            away = point - w.origin[self.model.link_root[link]].reshape(-1, 3)
            arm = np.linalg.norm(away - w.r[link].reshape(-1, 3), axis=1)
            turn = np.linalg.norm(velocity[:, :3], axis=1)
            speed = speed + sign * (velocity[:, 3:] + np.cross(velocity[:, :3], away))
            spin, reach = spin + turn, reach + turn * arm
        fastest = np.linalg.norm(speed, axis=1) + reach
        return np.asarray(STEEPEST * fastest * (spin + fastest / least))

    def _contact_places(self, ids: Array) -> Array:
        """Indices of contacts in the collider's list, by their ids."""
        c = self.stepper.collider.c
        known = c.id[: int(c.count[0])]
        order = np.argsort(known, kind="stable")
        return np.asarray(order[np.searchsorted(known, ids, sorter=order)])

    def _turning(self) -> Array:
        """Slots of rows of joints whose Jacobian depends on the state; other rows have negative ids, and
        their own γ.
        """
        listing, now = self.rows.listing(), self.rows.now
        slots = np.concatenate(
            [listing.slots[s : s + n] for s, n, kind in _extents(listing) if kind != CONTACT] or [np.zeros(0, np.int32)]
        )
        moves = (now.term[slots] >= 0) | (now.a[slots] >= 0) | (now.b[slots] >= 0)
        return np.asarray(slots[moves & (now.id[slots] >= 0)])

    def _bend_rows(self, time: float, implicit: float) -> None:
        """γ = J̇ v of rows by differences of J v along the velocity, with constant joint velocities; the state is
        restored.
        """
        stepper = self.stepper
        (q, v), speed = self.carrier.state(), stepper.space.s.v.copy()
        span = ALONG / max(1.0, float(np.abs(v).max()))
        speeds: list[dict[int, float]] = []
        for side in (1.0, -1.0):
            self.carrier.coast(q, v * (side * span), v, speed)
            self.place(time + side * span)
            stepper.free_motion(implicit)
            self._emit()
            seen = self._seen()
            speeds.append(dict(zip(self.rows.now.id[seen.slots].tolist(), seen.speed.tolist(), strict=True)))
        self.carrier.put(q, v)
        self.place(time)
        stepper.free_motion(implicit)
        self._emit()
        self._add_tracks(time)
        turning = self._turning()  # rows at the edge of being near may have appeared or disappeared
        ids = self.rows.now.id[turning].tolist()
        ends = [(speeds[0][id], speeds[1][id]) if id in speeds[0] and id in speeds[1] else (0.0, 0.0) for id in ids]
        self.rows.now.gamma[turning] = [(after - before) / (2.0 * span) for after, before in ends]

    def _seen(self) -> Seen:
        rows, space = self.rows, self.stepper.space
        listing = rows.listing()
        counts = (*rows.now.count.tolist(), *rows.now.room.tolist())
        if counts not in self._systems:
            if len(self._systems) > KEPT:
                self._systems.clear()
            self._systems[counts] = System(rows)
        system = self.last = self._systems[counts]
        m = listing.size
        if m:
            system.see(space, 0.0, ACCELERATION)
            system.multiply(space)
        now, slots = rows.now, listing.slots
        starts = listing.starts[:-1].astype(np.int64)
        heads = slots[starts]
        kinds = np.asarray(listing.kinds)
        pairs = np.full(len(kinds), -1, np.int64)
        met = kinds == CONTACT
        if met.any():
            c, places = self.stepper.collider.c, self._contact_places(now.id[heads[met]])
            pairs[met] = c.a[places].astype(np.int64) * len(self.model.solids) + c.b[places]
        pull = system.values("pull") if m else np.zeros(0)
        one = {name: now.arrays[name][slots].copy() for name in _FIELDS}
        A = system.matrix() if m else np.zeros((0, 0))
        if m:
            stuck = self._immovable(system, slots, A)
            A[stuck], A[:, stuck] = 0.0, 0.0
        if not np.isfinite(A).all():
            raise FloatingPointError("the constraint matrix is not finite")
        endless = (one["lo"] == -np.inf) & (one["hi"] == np.inf) & (one["erp"] > 0.0)
        closures = np.flatnonzero(np.repeat(kinds == SINGLE, np.diff(starts, append=m)) & endless)
        return Seen(
            now.id[heads].astype(np.int64) + kinds.astype(np.int64) * KIND,
            kinds,
            starts,
            slots,
            one["phi"][starts],
            system.values("speed") if m else np.zeros(0),
            pull,
            pull - now.gamma[slots],
            A,
            space.w.a.copy(),
            one,
            now.Jb[slots, 3:].copy(),
            pairs,
            system,
            self._redundant(closures, slots[closures], A),
        )

    def _immovable(self, system: System, slots: Array, A: Array) -> Array:
        """(m,) rows that nothing can move, as `immovable_rows` finds them at velocity level."""
        w, own, nv = self.stepper.space.w, np.diagonal(A), self.model.nv
        small = (own > 0.0) & (own <= SMALL * float(w.inverse.max(initial=0.0)))
        for k in np.flatnonzero(small).tolist():
            lanes = system.t.width.lanes if system.in_lanes else 1
            y = system.plain.y.reshape(-1, nv, lanes)[k // lanes, :, k % lanes]
            turn, push, along = self._sizes(int(slots[k]))
            axis = w.axis.reshape(-1, 6)
            part = along + turn * np.linalg.norm(axis[:, :3], axis=1) + push * np.linalg.norm(axis[:, 3:], axis=1)
            small[k] = own[k] <= LEAST**2 * float((w.inverse * part**2)[y != 0.0].sum())
        return np.asarray(small)

    def _sizes(self, slot: int) -> tuple[float, float, float]:
        """Magnitudes of a row's torques and forces on links, about O, and of its part on coordinates."""
        now, centre, link = self.rows.now, self.stepper.space.w.centre.reshape(-1, 3), self.model.body_link
        parts = [(int(now.a[slot]), now.Ja[slot]), (int(now.b[slot]), now.Jb[slot])]
        along = abs(float(now.Jdof[slot])) if now.dof[slot] >= 0 else 0.0
        term = int(now.term[slot])
        while term >= 0:
            parts.append((int(now.term_body[term]), now.term_J[term]))
            along += abs(float(now.term_Jdof[term])) if now.term_dof[term] >= 0 else 0.0
            term = int(now.term_next[term])
        there = [(body, J) for body, J in parts if body >= 0 and link[body] >= 0]
        turn = sum(float(np.linalg.norm(J[:3] + np.cross(centre[body], J[3:]))) for body, J in there)
        return turn, sum(float(np.linalg.norm(J[3:])) for _, J in there), along

    def _redundant(self, rows: Array, slots: Array, A: Array) -> Redundant:
        """Rows of loop joints and couplings, and which of them are redundant."""
        own = A[np.ix_(rows, rows)]
        weight, off = self._weigh(slots, float(np.diag(A).max(initial=0.0)))
        blur = OFF * float(off.max(initial=0.0))
        return Redundant(rows, redundant_rows(own, weight, blur), own, weight, blur)

    def _weigh(self, slots: Array, largest: float) -> tuple[Array, Array]:
        """As `redundant_rows.weigh_row`."""
        now, model = self.rows.now, self.model
        weight, turn = np.zeros(len(slots)), np.zeros(len(slots))
        for bodies, J in ((now.a[slots], now.Ja[slots]), (now.b[slots], now.Jb[slots])):
            link = np.where(bodies >= 0, model.body_link[np.maximum(bodies, 0)], -1)
            mass = np.where(link >= 0, model.link_mass[link], 0.0)
            mean = np.where(link >= 0, model.link_inertia[link, :3].sum(axis=1) / 3.0, 0.0)
            way, spin = (np.divide(1.0, x, out=np.zeros_like(x), where=x > 0.0) for x in (mass, mean))
            push = (J[:, 3:] ** 2).sum(axis=1)
            weight += np.where(push > 0.0, push * way, (J[:, :3] ** 2).sum(axis=1) * spin)
            turn += spin
        plain = (weight > 0.0) & (now.term[slots] < 0)
        phi2 = now.phi[slots] ** 2
        off = np.where(plain, phi2 * turn / np.where(plain, weight, 1.0), phi2)
        return np.where(plain, np.minimum(weight, largest), largest), off

    def answer(self, seen: Seen, lam: Array) -> Array:
        """(nv,) M⁻¹ Jᵀ λ of the rows that were evaluated last."""
        if not len(lam):
            return np.zeros(self.model.nv)
        system = seen.system
        system.t.lam.reshape(-1)[...] = 0.0
        system.t.lam.reshape(-1)[: len(lam)] = lam
        system.answer(self.stepper.space)
        return np.array(system.flow.a)


def _extents(listing: Any) -> list[tuple[int, int, int]]:
    """First row, number of rows and kind of every block."""
    starts = listing.starts.tolist()
    return [
        (start, end - start, kind) for start, end, kind in zip(starts, starts[1:], listing.kinds.tolist(), strict=False)
    ]
