"""Error report of tracking: deviation of a recorded character from its reference, torques and root assist."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.control.reference import Placed, Reference
from poise.control.torque_limits import weight_of
from poise.dynamics.state_queries import Bodies, bodies
from poise.model.errors import last_part
from poise.model.joints import Primitive
from poise.model.model import Model
from poise.sim.recording import Recording
from poise.sim.world_motors import motor_rows

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Correction:
    """Difference between a recorded motion and its reference, frame by frame."""

    time: Floats
    """(frames,) s."""
    joints: tuple[str, ...]
    """Names of the joints that have a reference, except the root."""
    error_deg: Floats
    """(frames, joints) error of each joint; degrees, mm for sliders."""
    torque: Floats
    """(frames, joints) torques of motors, drives and controllers, the norm for ball joints; N·m, N for sliders. They
    and the root assist are NaN if torques were not recorded."""
    root_error: Floats
    """(frames,) distance of the root from its reference; m."""
    root_error_deg: Floats
    """(frames,) degrees."""
    help_force: Floats
    """(frames, 3) root assist force, in world axes; N. It does not include the constraint force of a `held` root."""
    help_torque: Floats
    """(frames, 3) root assist torque, in the root's axes; N·m."""
    weight: float
    """Weight of the character; N."""
    touching: dict[str, NDArray[np.bool_]]
    """(frames,) for each foot: whether a contact pushes it. Empty if contacts were not recorded."""
    depth: dict[str, Floats]
    """(frames,) for each foot: penetration depth; m."""
    slip: dict[str, Floats]
    """(frames,) for each foot: accumulated sliding distance while in contact; m."""
    slides: NDArray[np.bool_]
    """(joints,) bool: sliding joints, whose errors are in mm and whose torques are forces in N."""
    held: bool = False
    """Whether the root was kinematic, with unlimited force."""
    contacts: bool = True
    """Whether contacts were recorded."""

    @property
    def mean_deg(self) -> float:
        """Mean error of all rotating joints; degrees."""
        turning = self.error_deg[:, ~self.slides]
        return float(turning.mean()) if turning.size else 0.0

    @property
    def max_deg(self) -> float:
        """Greatest error of all rotating joints; degrees."""
        turning = self.error_deg[:, ~self.slides]
        return float(turning.max()) if turning.size else 0.0

    @property
    def deepest(self) -> float:
        """Greatest penetration depth of a foot; m."""
        return max((float(depth.max()) for depth in self.depth.values() if len(depth)), default=0.0)

    def summary(self) -> str:
        """A few lines of text."""
        span = float(self.time[-1] - self.time[0]) if len(self.time) else 0.0
        lines = [
            f"{len(self.time)} frames, {span:.2f} s: joints off by {self.mean_deg:.2f}° on the mean, "
            f"{self.max_deg:.1f}° at most"
        ]
        for k in np.argsort(-self.error_deg.mean(axis=0), kind="stable")[:5] if self.error_deg.size else ():
            error, torque = self.error_deg[:, k], self.torque[:, k]
            of, unit = (" mm", "N") if self.slides[k] else ("°", "N·m")
            took = "" if np.isnan(torque).any() else f", {torque.mean():.0f} {unit} (at most {torque.max():.0f})"
            lines.append(f"  {self.joints[k]}: {error.mean():.2f}{of} (at most {error.max():.1f}{of}){took}")
        if len(self.root_error):
            lines.append(
                f"root off by {1e3 * self.root_error.mean():.1f} mm on the mean, {1e3 * self.root_error.max():.0f} mm "
                f"at most; {self.root_error_deg.max():.1f}° at most"
            )
        force, torque = (np.linalg.norm(part, axis=1) for part in (self.help_force, self.help_torque))
        if self.held:
            lines.append("the root is held on its way, by whatever force that takes")
        elif np.isnan(force).any():
            lines.append("torques and external help were not recorded")
        elif force.any() or torque.any():
            lines.append(
                f"external help: {force.mean():.0f} N on the mean ({100 * force.mean() / self.weight:.0f} % of the "
                f"weight), {force.max():.0f} N and {torque.max():.0f} N·m at most"
            )
        else:
            lines.append("no external help")
        for foot, slip in self.slip.items():
            share = 100.0 * self.touching[foot].mean()
            lines.append(
                f"{foot}: touches {share:.0f} % of the time, at most {1e3 * max(self.depth[foot].max(), 0.0):.2f} mm "
                f"deep, slides {1e3 * slip[-1]:.0f} mm"
            )
        if not self.contacts:
            lines.append("contacts were not recorded")
        return "\n".join(lines)


def correction(recording: Any, reference: Any, *, start: float = 0.0, feet: tuple[str, ...] = ("foot*",)) -> Correction:
    """Compare a recording with its reference.

    `recording` is a `Recording`, or a world that has just run. `reference` is a `Reference`, a `Tracking`, or an
    argument of `Reference`; it began at the world's time `start` (s). `feet` are names or patterns of the bodies whose
    contacts are reported. Contacts and torques are included if they were recorded.

    >>> import poise
    >>> scene = poise.Scene()
    >>> _ = scene.hinge(None, poise.box(0.1, 0.1, 1.0), axis="y", anchor=(0, 0, 0.5), name="arm")
    >>> swing = poise.motion.keyframes({0.0: {"arm": 0.0}, 0.5: {"arm": 0.8}, 1.0: {"arm": 0.0}})
    >>> world = scene.build()
    >>> follow = poise.control.Tracking(swing, by="drives")
    >>> _ = world.add_controller(follow)
    >>> told = correction(world.run(1.0), follow)
    >>> told.joints, told.mean_deg < 1.0
    (('arm',), True)
    """
    recording = getattr(recording, "recording", recording)
    if not isinstance(recording, Recording) or not len(recording):
        found = "an empty one" if isinstance(recording, Recording) else f"a {type(recording).__name__}"
        raise TypeError(f"recording: must be what world.run gives, or a world that has run, found {found}")
    if hasattr(reference, "reference"):
        reference, start = reference.reference, reference.start
    model = recording.model
    if not isinstance(reference, Reference):
        reference = Reference(reference, model)
    place = Placed(reference, model)
    wanted = place.at(recording.time - start + reference.start).q
    gap = place.difference(recording.q, wanted)
    root = place.root()
    joints = [j for j in place.joints if j != root]
    forces = _forces(recording)
    where = slice(*model.joint_v_start[root : root + 2].tolist()) if root >= 0 else slice(0, 0)
    help = forces[:, where] if root >= 0 else np.zeros((len(recording), 6))
    tree = int(model.link_root[model.body_link[model.joint_body[place.joints[0]]]])
    return Correction(
        recording.time,
        tuple(model.joint_names[j] for j in joints),
        _lengths(model, joints, gap) * _units(model, joints),
        _lengths(model, joints, forces),
        np.linalg.norm(gap[:, where][:, :3], axis=1) if root >= 0 else np.zeros(0),
        np.degrees(np.linalg.norm(gap[:, where][:, 3:], axis=1)) if root >= 0 else np.zeros(0),
        help[:, :3],
        help[:, 3:],
        weight_of(model, tree),
        *_steps(recording, tree, feet),
        _slides(model, joints),
        root >= 0 and bool(model.dof_prescribed[where].any()),
        recording.contacts is not None,
    )


def _lengths(model: Model, joints: list[int], values: Floats) -> Floats:
    """(frames, joints) norms over each joint's part of (frames, nv); only the rotation of joints that also slide."""
    slide = np.zeros(model.nv, bool)
    slide[model.primitive_v_start[model.primitive_kind == Primitive.SLIDE]] = True
    parts = []
    for j in joints:
        dofs = np.arange(*model.joint_v_start[j : j + 2].tolist())
        dofs = dofs if slide[dofs].all() else dofs[~slide[dofs]]
        parts.append(np.linalg.norm(values[:, dofs], axis=1))
    return np.stack(parts, axis=1) if parts else np.zeros((len(values), 0))


def _slides(model: Model, joints: list[int]) -> NDArray[np.bool_]:
    """(joints,) bool: joints that only slide."""
    return np.array([model.joint_kinds[j] == "slider" for j in joints], bool)


def _units(model: Model, joints: list[int]) -> Floats:
    """(joints,) from rad to degrees, from m to mm."""
    return np.where(_slides(model, joints), 1e3, np.degrees(1.0))


def _forces(recording: Recording) -> Floats:
    """(frames, nv) forces of motors, drives and controllers on all coordinates; NaN if they were not recorded."""
    model = recording.model
    total = np.full((len(recording), model.nv), 0.0 if recording.torques else np.nan)
    for kind in ("tau", "passive"):
        if kind in recording.torques:
            total += recording.torques[kind]
    if "motors" in recording.torques:
        for motor, rows in zip(model.motors, motor_rows(model), strict=True):
            for k, d in enumerate(motor.dofs):
                row = rows.start + (k if motor.ball else 0)
                total[:, d] += recording.torques["motors"][:, row] * motor.gear[k]
    return total


def _steps(
    recording: Recording, tree: int, feet: tuple[str, ...]
) -> tuple[dict[str, NDArray[np.bool_]], dict[str, Floats], dict[str, Floats]]:
    """For each foot: whether it is in contact, its penetration depth, and its sliding distance."""
    model, contacts = recording.model, recording.contacts
    own = [b for b in range(model.n_bodies) if model.body_link[b] >= 0 and model.link_root[model.body_link[b]] == tree]
    chosen = [b for b in own if any(fnmatchcase(last_part(model.body_names[b]), foot) for foot in feet)]
    n = len(recording)
    if contacts is None:
        return {}, {}, {}
    touching = {model.body_names[b]: np.zeros(n, bool) for b in chosen}
    depth = {model.body_names[b]: np.zeros(n) for b in chosen}
    slip = {model.body_names[b]: np.zeros(n) for b in chosen}
    if not chosen:
        return touching, depth, slip
    place = bodies(model, recording.q, recording.v)
    frame = np.repeat(np.arange(n), np.diff(contacts.start))
    body = model.solids.body[contacts.shapes]
    alike = np.isin(body, own).all(axis=1)  # contacts of one foot with the other do not count
    step = np.diff(recording.time, prepend=recording.time[0])
    for b in chosen:
        name = model.body_names[b]
        ours = (body == b).any(axis=1) & ~alike
        np.maximum.at(depth[name], frame[ours], contacts.depth[ours])
        pushed = ours & (np.einsum("ni,ni->n", contacts.force, contacts.normal) > 1e-9)
        k = frame[pushed]
        touching[name][k] = True
        pair, point = body[pushed], contacts.point[pushed]
        v = _point_speed(place, k, pair[:, 0], point) - _point_speed(place, k, pair[:, 1], point)
        normal = contacts.normal[pushed]
        speed = np.linalg.norm(v - normal * np.einsum("ni,ni->n", v, normal)[:, None], axis=1)
        total, count = np.bincount(k, speed, n), np.bincount(k, minlength=n)
        slip[name] = np.cumsum(total / np.maximum(count, 1) * step)
    return touching, depth, slip


def _point_speed(place: Bodies, frame: Any, body: Any, point: Floats) -> Floats:
    """(n, 3) velocities of points (n, 3) that move with bodies (n,); m/s."""
    twist = place.twist[frame, body]
    return np.asarray(twist[:, 3:] + np.cross(twist[:, :3], point - place.position[frame, body]))
