"""Mass, centre of mass and inertia of shapes and bodies.

Inertia matrices are 3 × 3, about the centre of mass; the six numbers of the model are (xx, yy, zz, xy, xz, yz) of such
a matrix, so that products of inertia carry the sign of the matrix element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.model.errors import SceneError
from poise.model.hull import convex_hull, polyhedron_moments
from poise.model.scene import Body, Inertia
from poise.model.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    Ellipsoid,
    HeightField,
    Plane,
    Shape,
    Sphere,
    TriangleMesh,
)
from poise.motion.rotations import quat_normalize, quat_to_matrix

Floats = NDArray[np.float64]

#: three moments printed with three digits may miss the triangle inequality by 1.5 units of a last digit of 1 in 100
_ROUNDED = 1.5e-2


@dataclass(frozen=True, eq=False)
class MassProperties:
    """Mass (kg), centre of mass (m, (3,)) and inertia about it (kg·m², (3, 3)) in some frame.

    >>> point = MassProperties(2.0, np.array((1.0, 0.0, 0.0)), np.zeros((3, 3)))
    >>> point.moved(position=(0, 0, 3), quat_wxyz=(0, 0, 0, 1)).com
    array([-1.,  0.,  3.])
    """

    mass: float
    com: Floats
    inertia: Floats

    @classmethod
    def nothing(cls) -> MassProperties:
        """Zero mass properties."""
        return cls(0.0, np.zeros(3), np.zeros((3, 3)))

    def moved(self, position: ArrayLike, quat_wxyz: ArrayLike) -> MassProperties:
        """The same mass properties in frame A, when this frame B has the pose (position, quat_wxyz) in A."""
        return self.turned(position, quat_to_matrix(quat_normalize(quat_wxyz)))

    def turned(self, position: ArrayLike, rotation: Floats) -> MassProperties:
        """Like `moved`, with the rotation matrix R_AB (3, 3)."""
        com = np.asarray(position, dtype=np.float64) + rotation @ self.com
        return MassProperties(self.mass, com, rotate_inertia(self.inertia, rotation))


def rotate_inertia(inertia: Floats, rotation: Floats) -> Floats:
    """R I Rᵀ, kept symmetric to the last bit; (3, 3)."""
    turned = rotation @ inertia @ rotation.T
    symmetric: Floats = 0.5 * (turned + turned.T)
    return symmetric


def shift_inertia(inertia: Floats, mass: float, offset: ArrayLike) -> Floats:
    """Inertia about a point `offset` away from the centre of mass (parallel axes); (3, 3)."""
    d = np.asarray(offset, dtype=np.float64)
    shifted: Floats = inertia + mass * (float(d @ d) * np.eye(3) - np.outer(d, d))
    return shifted


def combine(parts: Iterable[MassProperties]) -> MassProperties:
    """Total of several mass properties in one frame."""
    lumps = [part for part in parts if part.mass > 0.0 or part.inertia.any()]
    if not lumps:
        return MassProperties.nothing()
    if len(lumps) == 1:
        return lumps[0]
    mass = float(sum(part.mass for part in lumps))
    com: Floats = np.asarray(sum(part.mass * part.com for part in lumps) / (mass or 1.0))
    inertia: Floats = np.asarray(sum(shift_inertia(part.inertia, part.mass, part.com - com) for part in lumps))
    return MassProperties(mass, com, inertia)


def second_moment(inertia: Floats) -> Floats:
    """Second moment of the mass Σ = ∫ x xᵀ dm = ½ tr(I) 1 − I about the point and in the axes of I; (3, 3), kg·m²."""
    moment: Floats = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return moment


def nearest_physical_inertia(inertia: Floats) -> Floats:
    """The nearest inertia that a body of the same mass and centre of mass can have; (3, 3), kg·m².

    A matrix is the inertia of some body about its centre of mass if and only if its second moment Σ is positive
    semidefinite, which is the triangle inequality of the principal moments (P. M. Wensing, S. Kim and J.-J. E. Slotine,
    Linear matrix inequalities for physically consistent inertial parameter identification, RA-L 3(1), 2018). The matrix
    without the negative eigenvalues of Σ is the nearest such one in the Frobenius norm of Σ (N. J. Higham, Computing a
    nearest symmetric positive semidefinite matrix, 1988). The correction of Σ, and so of I and of mass matrices, is
    positive semidefinite.

    >>> nearest_physical_inertia(np.diag((0.0, 0.0, 2.0))).diagonal()
    array([1., 1., 2.])
    """
    values, axes = np.linalg.eigh(second_moment(inertia))
    if values[0] >= 0.0:
        return np.array(inertia)
    moment = rotate_inertia(np.diag(np.maximum(values, 0.0)), axes)
    x, y, z = moment.diagonal()
    # I = tr(Σ) 1 − Σ; sums on the diagonal cannot be negative by rounding
    physical: Floats = np.diag((y + z, x + z, x + y)) - (moment - np.diag((x, y, z)))
    return physical


def unphysical(mass: float, inertia: Floats) -> tuple[str, str] | None:
    """Why no rigid body has this mass and inertia about its centre of mass: the field and a message; None if one has.

    Violations of the triangle inequality by up to 1.5 % count as rounding of moments printed with three digits.
    """
    small, middle, large = np.linalg.eigvalsh(inertia)
    listed = f"({small:.6g}, {middle:.6g}, {large:.6g})"
    if min(inertia.diagonal()) < 0.0:
        found = ", ".join(f"{moment:.6g}" for moment in inertia.diagonal())
        return "moments", f"must be 0 or more, found ({found})"
    if small < -1e-9 * large or large < 0.0:
        return "products", f"too large for the moments: principal moments must be 0 or more, found {listed}"
    if small + middle < (1.0 - _ROUNDED) * large:
        wrong = "the largest must not exceed the sum of the others"
        return "moments", f"no body has such moments: {wrong}, found {listed}"
    if mass == 0.0 and large > 0.0:
        return "mass", f"a body with moments of inertia must have a mass, found 0 beside moments {listed}"
    return None


def is_physical_inertia(mass: float, inertia: Floats) -> bool:
    """Whether some body has this mass and inertia about its centre of mass; see `unphysical`.

    >>> is_physical_inertia(1.0, np.diag((1.0, 1.0, 3.0)))
    False
    """
    return unphysical(mass, inertia) is None


def pack_inertia(inertia: Floats) -> Floats:
    """(3, 3) → (xx, yy, zz, xy, xz, yz)."""
    i = inertia
    return np.array((i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]))


def unpack_inertia(six: ArrayLike) -> Floats:
    """(xx, yy, zz, xy, xz, yz) → (3, 3)."""
    xx, yy, zz, xy, xz, yz = np.asarray(six, dtype=np.float64)
    return np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))


def _sphere(shape: Sphere) -> tuple[float, Floats, Floats]:
    volume = 4.0 / 3.0 * pi * shape.radius**3
    return volume, np.zeros(3), 0.4 * shape.radius**2 * np.eye(3)


def _box(shape: Box) -> tuple[float, Floats, Floats]:
    x, y, z = (float(side) for side in shape.size)
    return x * y * z, np.zeros(3), np.diag((y * y + z * z, x * x + z * z, x * x + y * y)) / 12.0


def _cylinder(shape: Cylinder) -> tuple[float, Floats, Floats]:
    r, h = float(shape.radius), float(shape.length)
    across = r * r / 4.0 + h * h / 12.0
    return pi * r * r * h, np.zeros(3), np.diag((across, across, r * r / 2.0))


def _ellipsoid(shape: Ellipsoid) -> tuple[float, Floats, Floats]:
    x, y, z = (0.5 * float(side) for side in shape.size)
    return 4.0 / 3.0 * pi * x * y * z, np.zeros(3), np.diag((y * y + z * z, x * x + z * z, x * x + y * y)) / 5.0


def _capsule(shape: Capsule) -> tuple[float, Floats, Floats]:
    """A cylinder and two half spheres, whose centres of mass lie 3/8 r beyond the ends of the cylinder."""
    r, h = float(shape.radius), float(shape.length)
    cylinder, ball = pi * r * r * h, 4.0 / 3.0 * pi * r**3
    volume = cylinder + ball
    along = cylinder * r * r / 2.0 + ball * 0.4 * r * r
    across = cylinder * (r * r / 4.0 + h * h / 12.0) + ball * (0.4 * r * r + h * h / 4.0 + 0.375 * h * r)
    return volume, np.zeros(3), np.diag((across, across, along)) / volume


def _mesh(shape: ConvexMesh) -> tuple[float, Floats, Floats]:
    vertices, faces = mesh_arrays(shape)
    return polyhedron_moments(vertices, faces)


_MOMENTS: dict[type[Shape], Callable[[Any], tuple[float, Floats, Floats]]] = {
    Sphere: _sphere,
    Box: _box,
    Cylinder: _cylinder,
    Ellipsoid: _ellipsoid,
    Capsule: _capsule,
    ConvexMesh: _mesh,
}


def mesh_arrays(shape: ConvexMesh | TriangleMesh) -> tuple[Floats, NDArray[np.int64]]:
    """Vertices (n, 3) and triangles (m, 3) of a mesh; the triangles are those of the convex hull if none are given."""
    vertices = np.asarray(shape.vertices, dtype=np.float64)
    if shape.faces is None:
        return vertices, convex_hull(vertices)
    return vertices, np.asarray(shape.faces, dtype=np.int64)


def _unit_moments(shape: Shape) -> tuple[float, Floats, Floats]:
    """Volume, centre of mass and inertia of one kilogram, in the shape's own frame."""
    for kind in type(shape).__mro__:
        if kind in _MOMENTS:
            return _MOMENTS[kind](shape)
    raise SceneError(f"the mass of a {type(shape).__name__} is not known", line=shape.line, field="shape")


def shape_mass_properties(shape: Shape) -> MassProperties:
    """Mass properties of a shape in its body's frame, from its mass or else its density.

    >>> from poise.model.shapes import box
    >>> shape_mass_properties(box(1.0, 1.0, 1.0, mass=6.0)).inertia.diagonal()
    array([1., 1., 1.])
    """
    weightless = shape.mass == 0.0 if shape.mass is not None else shape.density == 0.0
    if weightless or isinstance(shape, (Plane, HeightField, TriangleMesh)):
        return MassProperties.nothing()
    volume, com, moments = _unit_moments(shape)
    mass = float(shape.mass) if shape.mass is not None else float(shape.density) * volume
    return MassProperties(mass, com, mass * moments).moved(shape.position, shape.quat_wxyz)


def inertia_matrix(inertia: Inertia) -> Floats:
    """Inertia about the centre of mass in the axes of `inertia.quat_wxyz`, (3, 3); kg·m²."""
    return unpack_inertia((*inertia.moments, *inertia.products))


def body_mass_properties(body: Body) -> MassProperties:
    """Mass properties of a body in its own frame: as given, else the sum of its shapes.

    >>> from poise.model.shapes import sphere
    >>> ends = [sphere(0.1, mass=1.0, position=(0, 0, 0)), sphere(0.1, mass=3.0, position=(0, 0, 1))]
    >>> body_mass_properties(Body("dumbbell", shapes=ends)).com
    array([0.  , 0.  , 0.75])
    """
    if body.inertia is None:
        return combine(shape_mass_properties(shape) for shape in body.shapes)
    given = body.inertia
    matter = MassProperties(float(given.mass), np.zeros(3), inertia_matrix(given))
    return matter.moved(given.com, given.quat_wxyz)
