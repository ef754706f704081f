"""The example of a person who is pushed: it stands by what it says, and by nothing else."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import poise

ROOT = Path(__file__).resolve().parents[2]
SECONDS, PUSHES = 30.0, 10


@pytest.fixture
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("standing_by_chance", ROOT / "examples" / "standing_by_chance.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Watch:
    """Looks at every step of a world: how high the head is, and what holds the root."""

    def __init__(self, world: poise.World) -> None:
        self.model, self.lowest, self.unexplained, self.shift = world.model, np.inf, 0.0, 0.0
        self.pelvis, self.torso = (world.model.body_index(f"hero/{name}") for name in ("pelvis", "torso"))
        self.pushes: list[np.ndarray] = []
        self.given: list[float] = []
        self._plain = world.apply_force
        world.apply_force = self._pushed  # type: ignore[method-assign]
        world.before_step(self._before)
        world.after_step(self._after)

    def _pushed(self, body: str, force: Any) -> None:
        assert body == "hero/torso"
        self.pushes.append(np.asarray(force))
        self._plain(body, force)

    def _before(self, world: poise.World) -> None:
        self.pushes.clear()
        self.q, self.v = world.q.copy(), world.v.copy()

    def _after(self, world: poise.World) -> None:
        """What moves the person as it moved, less the ground and the push, is what holds the root: nothing."""
        needed = poise.dynamics.inverse_dynamics(self.model, self.q, self.v, (world.v - self.v) / world.dt)
        place = poise.dynamics.bodies(self.model, self.q)
        chest = place.position[self.torso] + place.rotation[self.torso] @ self.model.body_com[self.torso]
        outer = [(chest, force) for force in self.pushes]
        for contact in world.report().contacts:
            own = [body.startswith("hero/") for body in (contact.body_a, contact.body_b)]
            if own != [True, True]:
                outer.append((contact.point, contact.force if own[1] else -contact.force))
        force = sum((acting for _, acting in outer), np.zeros(3))
        moment = sum((np.cross(point - self.q[:3], acting) for point, acting in outer), np.zeros(3))
        wrench = np.concatenate((force, place.rotation[self.pelvis].T @ moment))
        self.unexplained = max(self.unexplained, float(np.abs(needed[:6] - wrench).max()))
        self.lowest = min(self.lowest, float(world.body("hero/head").position[2]))
        drive = world.drive
        assert drive is not None
        assert not np.asarray(drive.gain_p)[:6].any()
        assert not np.asarray(drive.gain_d)[:6].any()
        assert not world.drive_forces[:6].any()
        self.given.append(float(np.linalg.norm(sum(self.pushes, np.zeros(3)))))


def share_of_edge(ahead: np.ndarray, support: np.ndarray, way: np.ndarray, reach: float) -> float:
    """How far along a way a point comes, of the distance to the edge of a convex region, found by halving."""
    ends = np.roll(support, -1, axis=0) - support

    def inside(point: np.ndarray) -> bool:
        away = point - support
        turns = ends[:, 0] * away[:, 1] - ends[:, 1] * away[:, 0]
        return bool((turns >= 0.0).all() or (turns <= 0.0).all())

    near, far = 0.0, 2.0
    for _ in range(60):
        middle = 0.5 * (near + far)
        near, far = (middle, far) if inside(ahead + middle * way) else (near, middle)
    return reach / near


def stated() -> dict[str, str]:
    """What the documentation says in its table."""
    text = (ROOT / "docs" / "sampling.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| ([a-z ,]+) \| (.+) \|$", text, re.MULTILINE))


@pytest.mark.slow
def test_a_person_stands_by_inner_torques_through_ten_pushes(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 80 % of what brings the capture point to the edge of the support, an impulse of m ω d."""
    made: dict[str, Any] = {"plans": 0}
    shares: list[float] = []

    class Control(example.SamplingControl):  # type: ignore[misc,name-defined]
        def __init__(self, batch: Any, cost: Any, channels: Any, **options: Any) -> None:
            made.update(options, batch=batch, channels=np.asarray(channels))
            super().__init__(batch, cost, channels, **options)

        def plan(self, *words: Any) -> Any:
            made["plans"] += 1
            return super().plan(*words)

    class Pushes(example.Pushes):  # type: ignore[misc,name-defined]
        def __init__(self, world: poise.World, *words: Any) -> None:
            made["world"], made["watch"] = world, Watch(world)
            super().__init__(world, *words)

        def force(self, world: poise.World, angle: float) -> Any:
            found = super().force(world, angle)
            whole = poise.dynamics.momentum(world.model, world.q, world.v)
            omega = np.sqrt(9.81 / whole.com[2])
            ahead = (whole.com + whole.linear / whole.mass / omega)[:2]
            impulse = np.linalg.norm(found) * example.PUSHED
            way = np.array((np.cos(angle), np.sin(angle)))
            support = self.standing.support(world.model, world.q)
            shares.append(share_of_edge(ahead, support, way, float(impulse / whole.mass / omega)))
            return found

    monkeypatch.setattr(example, "SamplingControl", Control)
    monkeypatch.setattr(example, "Pushes", Pushes)
    told = example.main(SECONDS, PUSHES)
    watch, world, batch, table = made["watch"], made["world"], made["batch"], stated()

    # it stood: never lower than a nod, on the feet where they were
    assert world.time == pytest.approx(SECONDS)
    assert watch.lowest > 1.4
    assert told["feet moved by (m)"] < 0.1  # one that bears nothing for a moment may creep; steps are longer

    # by itself: of forces of 700 N, (v − v')/dt leaves some 1e-16 · 240/s · 1 m/s · 70 kg, and sums of 50 bodies more
    assert watch.unexplained < 1e-6
    assert not made["channels"][:, :6].any()

    # all pushes came, each as hard and as long as they say
    assert told["pushes"] == PUSHES
    assert shares == pytest.approx([0.8] * PUSHES, rel=1e-9)
    steps = np.array(watch.given) > 0.0
    assert int((np.diff(steps.astype(int), prepend=0) > 0).sum()) == PUSHES
    assert steps.sum() * world.dt == pytest.approx(PUSHES * example.PUSHED, abs=PUSHES * world.dt)
    assert told["least push (N)"] > 100.0

    # samples, horizon and rate are those of the documentation
    assert table["samples"].startswith(f"{batch.n}, float32, steps of 1/{round(1 / batch.dt)} s;")
    assert batch.q.dtype == np.float32
    assert f"the world: float64, 1/{round(1 / world.dt)} s" in table["samples"]
    channels = len(made["channels"])
    assert table["horizon"].startswith(f"{made['horizon']:g} s, {made['knots']} knots × {channels} channels")
    rate = (made["plans"] - 1) / SECONDS  # the first one is made before, to compile
    assert table["rate"].startswith(f"{rate:g} plans a second")
    print(f"\nwall time a simulated second, with every step looked at: {told['wall time over time']:.2f} s")
