"""The stepper of maximal coordinates: that of trees, with its own free motion and its own end of a step."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.dynamics.dynamics_layout import MODEL
from poise.dynamics.maximal_bodies.body_state import APART, OWN
from poise.dynamics.maximal_bodies.fit_coordinates import BY_AXES, BY_BALL, BY_PLACE, BY_PLAIN_AXES, BY_TURNS
from poise.dynamics.maximal_bodies.joint_forces import IMPLICIT, MOMENTUM, SINGULAR
from poise.formulations.data import DATA, OPTIONS
from poise.formulations.driver import Stepper
from poise.formulations.maximal_coordinates import maximal_step
from poise.formulations.step_memory import FREE, is_free
from poise.formulations.step_status import ALL, BY_DISPLACEMENT, WITH_LOOPS
from poise.kernel.jit import entry
from poise.kernel.memory import F64, Block, Width
from poise.model.joints import Primitive
from poise.model.model import Model
from poise.model.state_fields import SlotCheck, StateFields

Array = NDArray[Any]

#: largest negative principal moment, relative to the largest, that counts as rounding
_NEGATIVE = 1e-9
CALM = 4.0
"""Number of steps in which errors decay, at acceleration level."""

_free_motion = entry(maximal_step.free_motion, MODEL, DATA, OPTIONS, extra=("float64", "int64"))
_advance = entry(maximal_step.advance, MODEL, DATA, OPTIONS, extra=("float64", "int64"))


def ways_to_fit(model: Model) -> list[int]:
    """Method that fits the coordinates of each link: see `dynamics.maximal_bodies.fit_coordinates`."""
    ways = []
    for link, (first, end) in enumerate(pairwise(model.link_primitive_start.tolist())):
        kinds, axes = model.primitive_kind[first:end].tolist(), model.primitive_axis[first:end]
        if kinds == [Primitive.BALL]:
            ways.append(BY_BALL)
        elif is_free(model, link):
            ways.append(BY_PLACE)
        elif not _is_plain(kinds, axes, model.primitive_anchor[first:end]):
            ways.append(BY_AXES)
        else:
            ways.append(BY_TURNS if set(kinds) == {Primitive.TURN} else BY_PLAIN_AXES)
    return ways


def _is_plain(kinds: list[int], axes: Array, anchors: Array) -> bool:
    """Whether axes are orthogonal unit vectors, in the metric of the joint's point: those of hinges, slides, universal
    joints along two of the axes, and links that slide along all of them first.
    """
    along = [int(abs(axis).argmax()) if sorted(abs(axis)) == [0.0, 0.0, 1.0] else None for axis in axes]
    if len(kinds) == 1:
        return kinds != [Primitive.SCREW]
    if kinds == [Primitive.TURN, Primitive.TURN]:
        return None not in along and along[0] != along[1] and bool(np.all(anchors[0] == anchors[1]))
    return kinds == FREE and along[:3] == [0, 1, 2]


def apart_block(model: Model, width: Width, turning: int) -> Block:
    """The block of separate bodies before the first step, which places them by the coordinates."""
    n, nq, nv = model.n_links, model.nq, model.nv
    _check_positive(model)
    if turning == MOMENTUM:
        _check_inertias(model)
    sizes = dict.fromkeys(("own", "seen"), OWN * n + nq + nv) | {"before": OWN * n, "late": nv, "lead": nv}
    sizes |= {"square": 36, "change": 6, "pivot": n}
    sizes |= dict.fromkeys(("moved", "sped", "gap", "old_gap", "slip"), n)
    fit = np.array(ways_to_fit(model), np.int32)
    block = APART.block(width, turning=turning, forces=0, alpha=1, beta=1, fit=fit, **sizes)
    block.own[...] = block.seen[...] = np.nan  # equals no coordinate
    return block


def _check_inertias(model: Model) -> None:
    """The momentum determines the angular velocity only if the inertia is positive about every axis."""
    moments = _principal_moments(model)
    for link in np.flatnonzero(~(moments[:, 0] > SINGULAR * moments.sum(axis=1))).tolist():
        name = model.body_names[int(model.link_body[link])]
        raise ValueError(f'body "{name}" has no inertia about some axis: turning="momentum" takes all three')


def _check_positive(model: Model) -> None:
    """Raise ValueError for unphysical inertias (`Inertia.allow_unphysical`): separate bodies move by their own inertia,
    so no principal moment may be negative, nor may two be 0 beside a third that is not.
    """
    small, middle, large = _principal_moments(model).T
    size = np.maximum(np.abs(small), np.abs(large))
    for link in np.flatnonzero((small < -_NEGATIVE * size) | (middle < SINGULAR * large)).tolist():
        name = model.body_names[int(model.link_body[link])]
        found = f"({small[link]:.3g}, {middle[link]:.3g}, {large[link]:.3g})"
        message = f'body "{name}" has principal moments of inertia {found} that no body has'
        raise ValueError(f"{message}: Maximal takes physical ones; repair the inertia, or take Reduced")


def _principal_moments(model: Model) -> Array:
    """(n_links, 3) principal moments of each link, ascending; kg·m²."""
    xx, yy, zz, xy, xz, yz = model.link_inertia.T
    return np.linalg.eigvalsh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).transpose(2, 0, 1))


class ApartStepper(Stepper):
    """Steps worlds in maximal coordinates."""

    _free_motion, _advance = _free_motion, _advance
    _separate, _centred = True, False

    def __init__(
        self,
        model: Model,
        width: Width = F64,
        *,
        turning: int = IMPLICIT,
        alpha: float | None = None,
        beta: float | None = None,
        **options: Any,
    ) -> None:
        """`turning`: integration of the gyroscopic torque, see `dynamics.maximal_bodies.joint_forces`; `alpha`, `beta`:
        VON eq. 11.
        """
        self._gains, self._turning = (alpha, beta), turning
        self._drifts = options.get("stabilize", BY_DISPLACEMENT) != BY_DISPLACEMENT
        super().__init__(model, width, **options)

    def begin_steps(self) -> None:
        """As in `Stepper`."""
        super().begin_steps()
        self._note_loops()

    def free_motion(self, dt: float, wanted: int = ALL) -> float:
        """As in `Stepper`."""
        self._note_loops()
        return super().free_motion(dt, wanted)

    def _note_loops(self) -> None:
        """With loop joints or constraint callbacks, the free motion includes the velocity products of joints."""
        self.options.set_count("separate", WITH_LOOPS if self.extras.joints or self.extras.hooks else 1)

    def _make_bodies(self) -> Block:
        """Every link is a separate body."""
        return apart_block(self.model, self.width, self._turning)

    @property
    def own_fields(self) -> list[StateFields]:
        """The states of all bodies."""
        return [
            StateFields("bodies", lambda: {"bodies": self.bodies.own.copy()}, self._check_bodies, self._write_bodies)
        ]

    def _write_bodies(self, slots: Mapping[str, Array]) -> None:
        """Without saved states, the bodies are placed by the coordinates."""
        self.bodies.own[...] = slots.get("bodies", np.nan)

    def _check_bodies(self, check: SlotCheck) -> None:
        """Bodies with unknown states (NaN) are placed by the coordinates."""
        if "bodies" in check.slots:
            held, own = check.array("bodies"), self.bodies.own
            if held.shape != own.shape or held.dtype != own.dtype or not np.isnan(held).all():
                check.like("bodies", own)

    @property
    def own(self) -> Array:
        """The states of all bodies, to be saved and restored."""
        return np.asarray(self.bodies.own)

    def use_forces(self, on: bool, dt: float = 1.0) -> None:
        """Step by forces from now on, with errors that decay in steps of dt; or by impulses."""
        self.bodies.set_count("forces", int(on))
        calm = 1.0 / (CALM * dt) if self._drifts else 0.0
        alpha, beta = self._gains
        self.bodies.alpha[...] = calm * calm if alpha is None else alpha
        self.bodies.beta[...] = 2.0 * calm if beta is None else beta

    @property
    def gaps(self) -> Array:
        """(n_links, 6) rotation (rad) and displacement (m) of each body from its joint, at the joint's point, at the
        end of the last step or before the first one.
        """
        model, gap = self.model, self.bodies.gap.reshape(-1, 6).copy()
        anchor = model.primitive_anchor[model.link_primitive_start[1:] - 1]
        pivot = self.end.r.reshape(-1, 3) + np.einsum("nij,nj->ni", self.end.R.reshape(-1, 3, 3), anchor)
        gap[:, 3:] += np.cross(gap[:, :3], pivot)
        return np.asarray(gap)
