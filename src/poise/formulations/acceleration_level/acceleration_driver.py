"""A step at acceleration level (KOK §7): constraint forces, accelerations, a tentative step; backtracking if it
penetrates, and impacts between the parts.

    f ← forces of the active rows                           `solve_forces`
    q, v ← a step of the integrator, f for every stage      `integrators`
    backtracking while something penetrates                 `event_location`
    v ← impacts of touching, approaching shapes             `impacts`

If no forces satisfy all rows (Painlevé), if they would add energy (`energy_guard`), or if a step has too many parts,
the rest of the step is taken at velocity level, and reported.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.constraints.kinds.joint_limit import CODES
from poise.constraints.pair_friction import body_that_rolls
from poise.constraints.row_store import BALL, CONTACT, SINGLE
from poise.constraints.rows import Rows
from poise.formulations.acceleration_level.acceleration_tracking import TRACK
from poise.formulations.acceleration_level.energy_guard import EnergyGuard
from poise.formulations.acceleration_level.evaluate_rows import KIND, Looker, Seen
from poise.formulations.acceleration_level.event_location import TOUCH, Start, to_first_contact
from poise.formulations.acceleration_level.impacts import impulses
from poise.formulations.acceleration_level.integrators import INTEGRATORS
from poise.formulations.acceleration_level.solve_forces import (
    CREEP,
    LOOK_WORK,
    Forces,
    Settled,
    forces,
    is_lasting,
    settle,
    turn_to_hold,
)
from poise.formulations.acceleration_level.state_adapters import Carrier, OnBodies, OnTree
from poise.formulations.acceleration_level.stiffness_guard import FormulationWarning, StiffnessGuard
from poise.formulations.ccd_stepping.motion_bounds import HASTE
from poise.formulations.constraint_set import Extras
from poise.formulations.driver import Stepper, Told
from poise.formulations.maximal_coordinates.maximal_driver import CALM, ApartStepper
from poise.formulations.sleep.sleep_state import Sleep
from poise.formulations.step_status import DIVERGED, DONE
from poise.kernel.blas import few_blas_threads
from poise.kernel.memory import Block
from poise.model.model import Model
from poise.model.state_fields import SlotCheck, StateFields

Array = NDArray[Any]
STAY = 1e-3
"""Gap up to which a contact that pushes stays active; m."""
LEAVING = 1e-4
"""Separation speed above which a contact has no row; m/s."""
STRIKE = 1e-6
"""Approach speed above which a new touch is an impact; m/s."""
PARTS = 60
"""Maximum number of parts of a step."""
TOLERANCE = 1e-8
"""Natural residual of constraint forces, relative to the largest |b|."""
JOLT = 20.0
"""Relative to the current speeds: a larger change within a part cannot come from forces."""
SHARE = 0.8
"""Share of a step's work for this level; the rest is for the remainder of a step at velocity level."""
FALLS = 10
"""Number of successive steps at velocity level that triggers a warning."""
ROUNDS = 3
"""Maximum number of rounds in which contacts change from sliding to sticking."""


class Accelerated:
    """Steps one world at acceleration level; a `Stepper` does the rest."""

    def __init__(
        self, model: Model, integrator: str = "euler", *, newton: bool = True, apart: bool = False, **options: Any
    ) -> None:
        """`apart`: maximal coordinates."""
        soft = np.flatnonzero(model.solids.compliance > 0.0)
        if len(soft):
            body = model.body_names[int(model.solids.body[soft[0]])]
            raise ValueError(f'"{body}" has a compliant surface: at acceleration level contacts are rigid')
        rolling = body_that_rolls(model)
        if rolling is not None:
            raise ValueError(f'"{rolling}" has rolling or torsional friction: it takes the velocity level')
        self.model, self.integrator = model, integrator
        self.inner: Stepper = (ApartStepper if apart else Stepper)(model, newton=newton, **options)
        self.inner.extras.motors.set_count("explicit", 1)
        self.carrier: Carrier = OnTree(self.inner)
        if isinstance(self.inner, ApartStepper):
            self.carrier = OnBodies(self.inner)
        self.looker = Looker(self.inner, self.carrier)
        self.space, self.collider = self.inner.space, self.inner.collider
        self.guard = StiffnessGuard(model, integrator)
        self._fallen, self._tells_falls = 0, True
        self._before: dict[int, tuple[Array, Array]] = {}
        self.watch: Callable[[Any, Block], None] | None = None
        """Called after every part of a step and every impact, with the stepper that took it and its rows."""
        self._clear_told()

    def check_stiffness(self, dt: float, motors: bool = True) -> None:
        """Raise ValueError for, or warn once about, forces that are too stiff for the explicit integrator; `motors` is
        False if their settings are not final.
        """
        tracked = [d for track in self.looker.tracks for d in track.dofs.tolist()]
        told = self.guard.look(self.space.s.q, self.space.x, self.extras.motors if motors else None, dt, tracked)
        if told is not None:
            self.guard.warned = True
            warnings.warn(told, FormulationWarning, stacklevel=3)

    def _note_level(self) -> None:
        """Warn once if successive steps fall back to the velocity level."""
        self._fallen = self._fallen + 1 if self.level == "velocity" else 0
        if self._fallen == FALLS and self._tells_falls:
            self._tells_falls = False
            warnings.warn(
                f'{FALLS} steps in a row found no forces at level="acceleration" and were taken at velocity level '
                "(report().level): rows that contradict each other, jams, or more parts than a step may have. Take a "
                'smaller dt, or level="velocity"',
                FormulationWarning,
                stacklevel=3,
            )

    def _use_forces(self, on: bool, dt: float = 1.0) -> None:
        """Step separate bodies by forces, or by impulses."""
        if isinstance(self.inner, ApartStepper):
            self.inner.use_forces(on, dt)

    def _clear_told(self) -> None:
        self.parts, self.backtracks, self.iterations, self.residual, self.level = 0, 0, 0, 0.0, "acceleration"
        self.span, self._solving, self._looks = 1.0, 0.0, self.looker.looks

    # ---- interface of the world --------------------------------------------------------------------------------------

    @property
    def rows(self) -> Rows:
        """The rows of the last step."""
        return self.looker.rows if self.level == "acceleration" else self.inner.rows

    @property
    def sleep(self) -> Sleep:
        """Sleeping is disabled at this level."""
        return self.inner.sleep

    @property
    def n_rows(self) -> int:
        """Rows of the last step."""
        return int(self.looker.last.t.n_rows[0]) if self.level == "acceleration" else self.inner.n_rows

    @property
    def told(self) -> Told:
        """Statistics of the last step."""
        inner = self.inner.told if self.level == "velocity" else Told()
        return Told(
            inner.sweeps,
            self.iterations + inner.newton_steps,
            max(self.residual, inner.residual),
            self.parts,
            self.backtracks,
            self.level,
            self.work + inner.work,
            self._solving + inner.newton_work,
            "capped" if self._is_spent else inner.status,
            inner.shift_status,
        )

    @property
    def work(self) -> float:
        """Work of the last step at this level, as `Reduced.budget` counts it."""
        return self._solving + LOOK_WORK * (self.looker.looks - self._looks)

    @property
    def _is_spent(self) -> bool:
        """Whether the step has used up its work; the rest of it is then taken at velocity level."""
        return self.work >= self._most_work

    @property
    def _most_work(self) -> float:
        return SHARE * float(self.inner.options.budget[0])

    @property
    def extras(self) -> Extras:
        """Motors, loop joints and couplings."""
        return self.inner.extras

    @property
    def change(self) -> None:
        """None: forces are those of the end of a step."""
        return

    def force_unit(self, dt: float) -> float:
        """Divisor that turns multipliers into forces."""
        return self.span

    @property
    def state_fields(self) -> list[StateFields]:
        """What the next step depends on besides coordinates and velocities."""
        extras = self.extras
        return [
            StateFields("joints", extras.memory, extras.check_memory, extras.remember),
            *self.inner.own_fields,
            StateFields("constraint set", self._read_held, self._check_held, self._write_held),
        ]

    def _read_held(self) -> dict[str, Array]:
        """The active constraints, their forces and tangents."""
        keys = sorted(self._before)
        both = [self._before[key] for key in keys]
        return {
            "held/keys": np.array(keys, np.int64),
            "held/forces": np.array([lam for lam, _ in both]).reshape(-1, 3),
            "held/tangents": np.array([tangent for _, tangent in both]).reshape(-1, 3),
        }

    def _check_held(self, check: SlotCheck) -> None:
        if any(name.startswith("held/") for name in check.slots):
            n = len(check.fits("held/keys", check.array("held/keys").shape[:1], np.int64))
            check.fits("held/forces", (n, 3), np.float64)
            check.fits("held/tangents", (n, 3), np.float64)

    def _write_held(self, slots: Mapping[str, Array]) -> None:
        """Without saved forces, the next step starts from zero. The rows of the velocity level are cleared."""
        self._before = {}
        self.looker.rows.clear()
        self.inner.rows.now.count[...] = 0
        self._clear_told()
        if "held/keys" in slots:
            both = zip(slots["held/forces"], slots["held/tangents"], strict=True)
            keys = slots["held/keys"].tolist()
            self._before = {key: (f.copy(), t.copy()) for key, (f, t) in zip(keys, both, strict=True)}

    # ---- the step ----------------------------------------------------------------------------------------------------

    @few_blas_threads
    def step(self, dt: float, time: float = 0.0) -> int:
        """One step from a time on; returns DONE, or DIVERGED with the state restored."""
        self.extras.check_explicit()
        self.check_stiffness(dt)
        s, carrier = self.space.s, self.carrier
        self._use_forces(True, dt)
        carrier.begin()
        face, start = (s.q.copy(), s.v.copy()), carrier.state()
        before = dict(self._before)
        self._clear_told()
        self._whole = dt
        end = DIVERGED
        self.extras.begin_parts(dt)
        try:
            end = self._parts(dt, time)
            carrier.mend()
            if not (np.isfinite(s.q).all() and np.isfinite(s.v).all()):
                end = DIVERGED
        except FloatingPointError:
            end = DIVERGED
        finally:
            self.extras.end_parts(end == DONE)
        if end == DONE:
            self._note_level()
            return DONE
        carrier.put(*start)
        s.q[...], s.v[...] = face
        self._before = before
        return DIVERGED

    def _parts(self, dt: float, time: float) -> int:
        """KOK §7, lines 2-16."""
        left, now = dt, time
        seen = self._resolve_impacts(self.looker.look(now), now)
        while left > 0.0:
            active = self._active(seen)
            length = self._longest(left, set(seen.keys[active].tolist()))
            if self.parts >= PARTS or left > 0.5 * PARTS * length or self._is_spent:
                return self._at_velocity_level(left, now, dt)
            self.parts += 1
            q, v = self.carrier.state()
            start = Start(seen, {int(key) for key in seen.keys[active]})

            def trial(h: float, q: Array = q, v: Array = v, now: float = now) -> Seen | None:
                return self._trial(q, v, now, h, dt)

            found = to_first_contact(trial, start, length, dt)
            if found is None:
                self.carrier.put(q, v)
                return self._at_velocity_level(left, now, dt)
            self.backtracks += found.backtracks
            self._keep_forces()
            self._tell_forces(found.seen)
            self.extras.measure(self.space, self.looker.rows.now, dt, found.length)
            self._show()
            left, now = left - found.length, now + found.length
            if left <= 1e-12 * dt:
                left = 0.0
            seen = self._resolve_impacts(found.seen, now)
        self._tell_forces(seen)
        return DONE

    def _longest(self, left: float, held: set[int]) -> float:
        """Maximum length of a part: near other shapes, nothing moves by more than half of its least extent."""
        stats = self.inner.stats
        haste, top = max(float(stats.haste[0]), float(stats.whirl[0])), float(stats.top[0])
        if not (np.isfinite(haste) and np.isfinite(left * top)):
            raise FloatingPointError("speeds are not finite")
        if left * haste <= HASTE:
            return left
        self.collider.find(self.space, self.inner.near + 2.0 * left * top)
        met = self.collider.c.id[: int(self.collider.c.count[0])].tolist()
        return HASTE / haste if any(CONTACT * KIND + id not in held for id in met) else left

    def _active(self, seen: Seen) -> Array:
        """(B,) active blocks: contacts that touch and do not separate, blocks that pushed and are still near, lasting
        blocks.
        """
        pushing = self._pushing(seen)
        touching = (seen.phi <= TOUCH) & (seen.approach() <= LEAVING)
        return np.asarray((seen.one_sided & (touching | (pushing & (seen.phi <= STAY)))) | is_lasting(seen))

    def _pushing(self, seen: Seen) -> Array:
        """(B,) blocks that pushed in the part before."""
        keys = [key for key, (lam, _) in self._before.items() if lam.any()]
        return np.asarray(np.isin(seen.keys, np.array(keys, np.int64)))

    def _torn(self, seen: Seen) -> Array:
        """(B,) loop joints and couplings that move: new ones at any speed, others faster than the growth and correction
        of errors explains.
        """
        known = np.array([key in self._before for key in seen.keys.tolist()], bool)
        least = np.where(known, max(float(self.inner.options.quick[0]), STRIKE), STRIKE)
        mended = np.where(known, np.minimum(np.abs(seen.phi) / (CALM * self._whole), 1.1 * CREEP), 0.0)
        apart = seen.approach() * np.sign(seen.phi)
        fast = np.where(seen.phi == 0.0, np.abs(seen.approach()) > least, (apart > least) | (-apart > least + mended))
        return np.asarray(seen.closures & fast)

    # ---- a tentative step --------------------------------------------------------------------------------------------

    def _trial(self, q: Array, v: Array, now: float, h: float, dt: float) -> Seen | None:
        """Step from a state for a time, and evaluate the rows; None if no forces satisfy them."""
        self.carrier.put(q, v)
        self._settled: Settled | None = None
        self._energy: EnergyGuard | None = None

        def accelerations(time: float) -> Array | None:
            if self._is_spent:
                return None
            implicit = h if self.integrator == "euler" else 0.0
            seen = self.looker.look(time, implicit)
            found = self._forces(seen, h, CALM * dt)
            if found is None:
                return None
            return self.carrier.rates(np.asarray(seen.a_free + self.looker.answer(seen, found.lam)))

        if not INTEGRATORS[self.integrator](self.looker, accelerations, q, v, now, h):
            return None
        self.looker.place(now + h)
        seen = self.looker.look(now + h)
        return seen if self._may_be() else None

    def _may_be(self) -> bool:
        """Whether the forces can explain the energy of the state at the end of a trial."""
        return self._energy is None or self._energy.allows(self.model, self.looker)

    def _forces(self, seen: Seen, h: float, calm: float) -> Forces | None:
        """Constraint forces of a stage; the first stage determines the active blocks, and their modes."""
        first = self._settled is None
        if self._settled is None:
            self._settled = settle(seen, self._active(seen), h, calm, self._before)
        found = self._counted(forces(seen, self._settled, TOLERANCE))
        for _ in range(ROUNDS):
            if not first or found is None or not turn_to_hold(seen, self._settled, found, h):
                break
            found = self._counted(forces(seen, self._settled, TOLERANCE))
        if found is None or self._is_jolt(seen, found, h):
            return None
        # kinematic bodies may supply any energy
        if first and self._settled.holds and not self.model.dof_prescribed.any():
            self._energy = EnergyGuard.at(self.model, self.looker, seen, found.lam, h)
        self.iterations += found.iterations
        self.residual = max(self.residual, found.residual)
        for key, lam in _by_key(seen, found.lam).items():
            if key in self._settled.holds:
                self._settled.lam[key] = lam
        return found

    def _counted(self, found: Forces | None) -> Forces | None:
        """The argument, with its work added to that of the step."""
        self._solving += LOOK_WORK if found is None else found.work
        return found

    def _is_jolt(self, seen: Seen, found: Forces, h: float) -> bool:
        """Whether forces would change velocities within a part far more than speeds and accelerations justify: near a
        jam forces become unbounded, and an impact is needed.
        """
        change = h * float(np.abs(seen.A @ found.lam).max(initial=0.0))
        speed = max(float(self.inner.stats.top[0]), float(np.abs(seen.speed).max(initial=0.0)))
        single = np.repeat(seen.kinds == SINGLE, seen.sizes)
        bend = np.where(single, seen.pull - seen.free, 0.0)
        finite = single & np.isfinite(seen.one["lo"]) & np.isfinite(seen.one["hi"])
        given = seen.A @ np.where(finite, found.lam, 0.0)  # by motors and dry friction
        holds = self._settled.holds if self._settled is not None else {}
        mends = np.array([holds[key].stop[0] for key in seen.keys[seen.closures].tolist() if key in holds])
        pulls = (seen.free, bend, given, mends, seen.one["a_ref"], self.model.gravity)
        return change > JOLT * (speed + h * sum(float(np.abs(pull).max(initial=0.0)) for pull in pulls))

    def _keep_forces(self) -> None:
        """Keep the active constraints of a completed part, with forces and tangents."""
        settled = self._settled
        assert settled is not None
        self._before = {key: (settled.lam[key], hold.tangent) for key, hold in settled.holds.items()}

    # ---- impacts -----------------------------------------------------------------------------------------------------

    def _resolve_impacts(self, seen: Seen, now: float) -> Seen:
        """Apply impulses if touching blocks approach (KOK §7, lines 12, 13); returns the rows after that."""
        pushing, speed = self._pushing(seen), seen.approach()
        touching = seen.one_sided & ((seen.phi <= TOUCH) | (pushing & (seen.phi <= STAY)))
        least = np.where(pushing, max(float(self.inner.options.quick[0]), STRIKE), STRIKE)
        if not ((touching & (speed < -least)) | self._torn(seen)).any():
            return seen
        lam, spent, work = impulses(seen, touching, touching & ~pushing, self._most_work - self.work)
        self.iterations += spent
        self._solving += work
        self.looker.rows.now.lam[seen.slots] = lam
        self.extras.measure(self.space, self.looker.rows.now, 1.0)
        self._show()
        self.carrier.kick(self.looker.answer(seen, lam))
        after = self.looker.look(now)
        parting = after.keys[after.one_sided & (after.approach() > LEAVING)]
        for key in parting.tolist():
            self._before.pop(key, None)
        return after

    # ---- remainder ---------------------------------------------------------------------------------------------------

    def _at_velocity_level(self, left: float, now: float, dt: float) -> int:
        """One finite step at velocity level for the remainder; tracked joints keep their last forces."""
        self.level, self.span = "velocity", left
        y, x, model = self.space.stages, self.space.x, self.model
        for k in (2, 1, 0):
            self.looker.place(now + 0.5 * k * left)
            for path, n in ((y.path_q, model.nq), (y.path_v, model.nv), (y.path_a, model.nv)):
                path[k * n : (k + 1) * n] = path[:n]
        self.looker.act(now)
        options = self.inner.options
        tau, slop, budget = x.tau.copy(), options.slop.copy(), options.budget.copy()
        for track in self.looker.tracks:
            for d in track.dofs.tolist():
                x.tau[d] += self._before.get(CODES * d + TRACK, (np.zeros(3), None))[0][0]
        y.path_v[: model.nv] = y.path_v[model.nv : 2 * model.nv] - left * y.path_a[: model.nv]  # as in `World`
        self.inner.rows.now.count[...] = 0  # its last step is too long ago for a warm start
        self.inner.watch = self.watch
        options.budget[...] = np.maximum(budget - self.work, (1.0 - SHARE) * budget)
        options.slop[...] = np.minimum(slop, TOUCH)  # remaining overlaps would accumulate
        motors = self.extras.motors
        motors.set_count("explicit", 0)
        self._use_forces(False)
        try:
            end = self.inner.step(left)
        finally:
            x.tau[...], options.slop[...], options.budget[...] = tau, slop, budget
            motors.set_count("explicit", 1)
            self._use_forces(True, dt)
        self.parts += self.inner.parts
        led = {CODES * d + TRACK for track in self.looker.tracks for d in track.dofs.tolist()}
        self._before = {key: kept for key, kept in self._before.items() if key in led}
        return end

    def _show(self) -> None:
        if self.watch is not None:
            self.watch(self, self.rows.now)

    def _tell_forces(self, seen: Seen) -> None:
        """Copy the last forces to the current rows, for the report."""
        now = self.looker.rows.now
        for k, key in enumerate(seen.keys.tolist()):
            if key not in self._before:
                continue
            start, lam = int(seen.starts[k]), self._before[key][0]
            if key // KIND == CONTACT:
                now.lam[seen.slots[start : start + 3]] = seen.axes[start : start + 3] @ lam
            else:
                rows = slice(start, start + (3 if key // KIND == BALL else 1))
                now.lam[seen.slots[rows]] = np.clip(
                    lam[: rows.stop - start], seen.one["lo"][rows], seen.one["hi"][rows]
                )


def _by_key(seen: Seen, lam: Array) -> dict[int, Array]:
    """(3,) forces of blocks; of contacts in world axes."""
    out = {}
    for key, kind, start in zip(seen.keys.tolist(), seen.kinds.tolist(), seen.starts.tolist(), strict=True):
        if kind == CONTACT:
            out[key] = np.asarray(lam[start : start + 3] @ seen.axes[start : start + 3])
        else:
            part = lam[start : start + 3] if kind == BALL else lam[start : start + 1]
            out[key] = np.concatenate((part, np.zeros(3 - len(part))))
    return out
