"""Check that every degree of freedom moves inertia: that the mass matrix is not singular.

A massless link is valid if its children have inertia along each of its degrees of freedom. The check eliminates the
degrees of freedom from the leaves to the root, as forward dynamics does, and checks the pivots: at the rest pose, and
if that fails (three hinges can rest in gimbal lock) at a generic pose. Links with a negative principal moment
(`Inertia.allow_unphysical`) may make the mass matrix indefinite at some poses: random poses are searched for negative
pivots.
Spatial vectors are (ω, v) in a link's axes about its origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from poise.model.errors import Problem, SceneError
from poise.model.joints import Primitive
from poise.model.massprops import MassProperties, shift_inertia
from poise.model.scene import Body, Scene
from poise.motion.rotations import cross, quat_to_matrix, skew

Floats = NDArray[np.float64]

#: a pivot below this fraction of its value before the last elimination is rounding (ε times some hundreds)
_CANCELLED = 1e-13
#: a moment of inertia below this fraction of the largest is rounding (some ε); a planar chain of 10⁵ links is above it
_VANISHING = 4e-15
#: a principal moment below this fraction of the largest is negative by more than rounding
_NEGATIVE = -1e-9
#: number of random poses at which scenes with negative principal moments are checked
_POSES = 64


@dataclass
class LinkMotion:
    """A link during compilation."""

    body: int
    parent: int
    root: int
    position: Floats
    """Rest position in the parent link's frame; m."""
    quat: Floats
    """Rest orientation in the parent link's frame."""
    mass: MassProperties = field(default_factory=MassProperties.nothing)
    base_position: Floats = field(default_factory=lambda: np.zeros(3))
    """Free joints: the parent's frame in its link's frame."""
    base_quat: Floats = field(default_factory=lambda: np.array((1.0, 0.0, 0.0, 0.0)))
    free_pose: tuple[Floats, Floats] | None = None
    """Free joints: pose in the parent's frame."""
    motions: list[Floats] = field(default_factory=list)
    """Twist (6,) of each degree of freedom at the rest pose."""

    def add_motion(self, primitive: Primitive, axis: Floats, anchor: Floats, pitch: float) -> None:
        """Append the twists of a primitive whose axis and anchor are given at the rest pose."""
        if primitive is Primitive.SLIDE:
            self.motions.append(np.concatenate((np.zeros(3), axis)))
            return
        for turn in np.eye(3) if primitive is Primitive.BALL else (axis,):
            self.motions.append(np.concatenate((turn, cross(anchor, turn) + pitch * turn)))


def check_mobility(
    scene: Scene,
    bodies: Sequence[Body],
    links: Sequence[LinkMotion],
    dof_names: Sequence[str],
    dof_armature: Sequence[float],
    dof_prescribed: Sequence[int],
) -> None:
    """Raise `SceneError` if a degree of freedom moves no inertia at any pose.

    Also if negative principal moments make the mass matrix indefinite at some pose.
    """
    dofs = _Dofs(dof_names, dof_armature, dof_prescribed)
    if any(_is_negative(link.mass.inertia) for link in links):
        _check_definite(scene, bodies, links, dofs)
    if _stuck(scene, bodies, links, [(link.motions, _to_parent(link)) for link in links], dofs):
        elsewhere = [_anywhere(link) for link in links]
        if problems := _stuck(scene, bodies, links, elsewhere, dofs):
            raise SceneError.of(problems)


def _is_negative(inertia: Floats) -> bool:
    """Whether there is a negative principal moment."""
    moments = np.linalg.eigvalsh(inertia)
    return bool(moments[0] < _NEGATIVE * abs(moments[2]))


def _check_definite(scene: Scene, bodies: Sequence[Body], links: Sequence[LinkMotion], dofs: _Dofs) -> None:
    """Raise `SceneError` if the mass matrix is indefinite at the rest pose or at one of many random poses."""
    rng = np.random.default_rng(0)
    at_rest = [(link.motions, _to_parent(link)) for link in links]
    for poses in (at_rest, *([_anywhere(link, rng) for link in links] for _ in range(_POSES))):
        if _stuck(scene, bodies, links, poses, dofs, indefinite=True):
            strange = [link for link in links if _is_negative(link.mass.inertia)]
            raise SceneError.of([_not_definite(scene, bodies[link.body]) for link in strange])


@dataclass(frozen=True)
class _Dofs:
    """Data of all degrees of freedom."""

    names: Sequence[str]
    armature: Sequence[float]
    prescribed: Sequence[int]


def _stuck(
    scene: Scene,
    bodies: Sequence[Body],
    links: Sequence[LinkMotion],
    poses: Sequence[tuple[Sequence[Floats], Floats]],
    dofs: _Dofs,
    indefinite: bool = False,
) -> list[Problem]:
    """Degrees of freedom without inertia, for links with given motions and transforms from their parents.

    With `indefinite` those with a negative one.
    """
    articulated = [_spatial_inertia(link.mass) for link in links]
    # the same before the last elimination: the reference of rounding errors
    stiffer = [inertia.copy() for inertia in articulated]
    problems: list[Problem] = []
    dof = len(dofs.names)
    for k in reversed(range(len(links))):
        link, inertia, before = links[k], articulated[k], stiffer[k]
        motions, transform = poses[k]
        for motion in reversed(motions):
            dof -= 1
            if dofs.prescribed[dof]:
                continue
            push = inertia @ motion
            pivot = float(motion @ push) + dofs.armature[dof]
            if not np.isfinite(pivot):
                raise _too_large(scene, bodies[link.body], dofs.names[dof])
            rounding = _rounding(inertia, before, motion, dofs.armature[dof])
            if pivot < -rounding or (pivot <= rounding and not indefinite):
                problems.append(_problem(scene, bodies[link.body], dofs.names[dof]))
                continue
            if pivot <= rounding:
                continue
            before, inertia = inertia, inertia - np.outer(push, push) / pivot
        if link.parent >= 0:
            articulated[link.parent] += transform.T @ inertia @ transform
            stiffer[link.parent] += transform.T @ before @ transform
    return problems[::-1]


def _anywhere(link: LinkMotion, rng: np.random.Generator | None = None) -> tuple[list[Floats], Floats]:
    """Motions of a link and its transform from the parent after a displacement of each degree of freedom."""
    amounts = [0.6 + 0.3 * k if rng is None else rng.uniform(-np.pi, np.pi) for k in range(len(link.motions))]
    motions: list[Floats] = []
    after = np.eye(6)  # transform of twists by the later degrees of freedom
    for motion, amount in zip(reversed(link.motions), reversed(amounts), strict=True):
        motions.append(after @ motion)
        after = after @ _moved(motion, amount)
    return motions[::-1], after @ _to_parent(link)


def _moved(motion: Floats, amount: float) -> Floats:
    """Transform of twists to the frame of a link displaced along a motion; 6 × 6."""
    turn, slide = motion[:3] * amount, motion[3:] * amount
    angle = float(np.linalg.norm(turn))
    spin = skew(turn / angle) if angle else np.zeros((3, 3))
    rotation = np.eye(3) + np.sin(angle) * spin + (1.0 - np.cos(angle)) * spin @ spin
    if angle:
        slide = (np.eye(3) + (1.0 - np.cos(angle)) / angle * spin + (1.0 - np.sin(angle) / angle) * spin @ spin) @ slide
    return _from_frame(rotation, slide)


def _rounding(inertia: Floats, before: Floats, motion: Floats, armature: float) -> float:
    """Largest pivot that may be due to rounding."""
    turning = float(np.trace(inertia[:3, :3])) if motion[:3].any() else 0.0
    cancelled = float(motion @ before @ motion) + armature
    return max(_VANISHING * turning, _CANCELLED * cancelled, float(np.finfo(np.float64).tiny))


def _spatial_inertia(matter: MassProperties) -> Floats:
    """6 × 6 inertia about the origin of the frame of the mass properties."""
    spatial = np.zeros((6, 6))
    offset = matter.mass * skew(matter.com)
    spatial[:3, :3] = shift_inertia(matter.inertia, matter.mass, matter.com)
    spatial[:3, 3:], spatial[3:, :3] = offset, offset.T
    spatial[3:, 3:] = matter.mass * np.eye(3)
    return spatial


def _to_parent(link: LinkMotion) -> Floats:
    """Transform of a twist from the parent link (its axes, its origin) to the link's axes and origin; 6 × 6."""
    return _from_frame(quat_to_matrix(link.quat), link.position)


def _from_frame(rotation: Floats, position: Floats) -> Floats:
    """Transform of twists to a frame at a pose; 6 × 6."""
    transform = np.zeros((6, 6))
    transform[:3, :3] = transform[3:, 3:] = rotation.T
    transform[3:, :3] = -rotation.T @ skew(position)
    return transform


def _too_large(scene: Scene, body: Body, dof: str) -> SceneError:
    message = "masses, sizes or distances of what this moves are too large for numbers to hold"
    return SceneError(message, file=scene.source, line=body.line, field=f'body "{body.name}": joint coordinate "{dof}"')


def _not_definite(scene: Scene, body: Body) -> Problem:
    message = (
        "the mass matrix is not positive definite at some pose, as this body and what is fixed to it have a negative "
        "principal moment of inertia; repair the inertia"
    )
    return Problem(message, scene.source, body.line, f'body "{body.name}": inertia')


def _problem(scene: Scene, body: Body, dof: str) -> Problem:
    message = (
        "nothing that has inertia moves along this degree of freedom; give the body or what it "
        "carries a mass (and size), or the joint an armature"
    )
    return Problem(message, scene.source, body.line, f'body "{body.name}": joint coordinate "{dof}"')
