"""The nearest inertia that a body can have: identities over random matrices and rotations."""

from __future__ import annotations

import numpy as np
import pytest

from poise.model.massprops import is_physical_inertia, nearest_physical_inertia, second_moment

SEEDS = range(40)
ROUNDING = 1e-14
"""Some ε, relative to the norm of the matrix."""


def random_symmetric(rng: np.random.Generator) -> np.ndarray:
    """A symmetric matrix of any signature, of a size between 1e-6 and 1e3 kg·m²."""
    matrix = rng.normal(size=(3, 3)) * 10.0 ** rng.uniform(-6, 3)
    return matrix + matrix.T


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    rotation, upper = np.linalg.qr(rng.normal(size=(3, 3)))
    rotation *= np.sign(np.diag(upper))
    return rotation * np.sign(np.linalg.det(rotation))


def of_points(rng: np.random.Generator, count: int) -> np.ndarray:
    """Inertia of point masses about their centre of mass, which is physical by its definition."""
    mass, points = rng.uniform(0.1, 1.0, count), rng.normal(size=(count, 3))
    points -= mass @ points / mass.sum()
    return sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(mass, points, strict=True))


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.linalg.norm(found - expected) <= ROUNDING * np.linalg.norm(expected))


@pytest.mark.parametrize("seed", SEEDS)
class TestIdentities:
    def test_result_satisfies_the_triangle_inequality(self, seed: int) -> None:
        found = nearest_physical_inertia(random_symmetric(np.random.default_rng(seed)))
        small, middle, large = np.linalg.eigvalsh(found)
        assert np.array_equal(found, found.T)
        assert small >= -ROUNDING * large
        assert small + middle >= (1.0 - ROUNDING) * large
        assert np.diag(found).min() >= 0.0
        assert is_physical_inertia(1.0, found)

    def test_idempotent(self, seed: int) -> None:
        once = nearest_physical_inertia(random_symmetric(np.random.default_rng(seed)))
        assert close(nearest_physical_inertia(once), once)

    @pytest.mark.parametrize("count", [2, 3, 5])
    def test_unchanged_when_physical(self, seed: int, count: int) -> None:
        # two points are a rod, three a plate: on the border of what is physical
        matrix = of_points(np.random.default_rng(seed), count)
        assert close(nearest_physical_inertia(matrix), matrix)
        assert is_physical_inertia(1.0, matrix)

    def test_rotation_equivariant(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        matrix, rotation = random_symmetric(rng), random_rotation(rng)
        turned = nearest_physical_inertia(rotation @ matrix @ rotation.T)
        error = turned - rotation @ nearest_physical_inertia(matrix) @ rotation.T
        # the result may be small beside the matrix, whose rounding it carries
        assert np.linalg.norm(error) <= ROUNDING * np.linalg.norm(matrix)

    def test_scales_with_mass(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        matrix, factor = random_symmetric(rng), 10.0 ** rng.uniform(-9, 9)
        assert close(nearest_physical_inertia(factor * matrix), factor * nearest_physical_inertia(matrix))

    def test_none_is_nearer(self, seed: int) -> None:
        """P is the projection of Σ on a convex cone: ⟨Σ − P, P⟩ = 0, and ⟨Σ − P, C⟩ ≤ 0 for every C of the cone."""
        rng = np.random.default_rng(seed)
        given = second_moment(random_symmetric(rng))
        size = np.linalg.norm(given)
        nearest = second_moment(nearest_physical_inertia(np.trace(given) * np.eye(3) - given))
        off = given - nearest
        assert abs(np.sum(off * nearest)) <= ROUNDING * size**2
        for _ in range(20):
            other = second_moment(of_points(rng, 4))
            assert np.sum(off * other) <= ROUNDING * size * np.linalg.norm(other)

    def test_only_adds(self, seed: int) -> None:
        """What is added is positive semidefinite, so that no mass matrix gets smaller."""
        matrix = random_symmetric(np.random.default_rng(seed))
        added = nearest_physical_inertia(matrix) - matrix
        assert np.linalg.eigvalsh(added).min() >= -ROUNDING * np.linalg.norm(matrix)


def test_known_answers() -> None:
    # Σ of diag(0, 0, 2) is diag(1, 1, -1); without its negative part that is a disc
    assert np.array_equal(nearest_physical_inertia(np.diag([0.0, 0.0, 2.0])), np.diag([1.0, 1.0, 2.0]))
    assert np.array_equal(nearest_physical_inertia(-np.eye(3)), np.zeros((3, 3)))
    # Σ of diag(-1, 4, 4) is diag(4.5, -0.5, -0.5), which becomes a rod along x
    assert np.array_equal(nearest_physical_inertia(np.diag([-1.0, 4.0, 4.0])), np.diag([0.0, 4.5, 4.5]))


def test_moments_without_mass_are_not_physical() -> None:
    assert not is_physical_inertia(0.0, np.eye(3))
    assert is_physical_inertia(0.0, np.zeros((3, 3)))
