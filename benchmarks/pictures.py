"""A picture of a humanoid on the floor, a film of two seconds, and rays at it beside MuJoCo's.

640 × 480 pixels on one core, everything included: poses of the shapes, light, shadows, bytes. The film has 60 frames
of the humanoid, which moves along and is followed by the camera. Rays go from one point to points about it, in
float64; MuJoCo casts them by `mj_multiRay`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import mujoco
import numpy as np
from _common import Case, Report, Row, arguments, effort, measure
from _trees import find_humanoid, load_model

from poise.collision.ray_casting.rays import cast
from poise.dynamics import displaced
from poise.model.model import Model
from poise.sim import Recording
from poise.view.film import Film, film_times
from poise.view.render import Camera, Painter

QUESTION = "what a picture costs, a film, and a ray"
SIZE = (640, 480)
RAYS = 8192
FILM = 60
"""Frames."""
PICTURES = {
    "one sample a pixel": {"smooth": False},
    "four samples at edges": {"smooth": True},
    "one sample, no shadows": {"smooth": False, "shadows": False},
}


def sliding(model: Model) -> Recording:
    """Two seconds in which a model slides along x, its joints waving."""
    times = np.linspace(0.0, 2.0, 241)
    waves = np.random.default_rng(1).uniform(0.0, 6.0, model.nv)
    v = 0.2 * np.sin(3.0 * times[:, None] + waves)
    v[:, 0] = times
    q = np.array([displaced(model, model.q_rest, row) for row in v])
    return Recording(times, q, v, model)


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, model=True)
    path = find_humanoid(options.model)
    model, much = load_model(path), effort(options, rounds=30)
    q = model.q_rest
    camera = Camera.looking_at(model, q)
    painters = {name: Painter(model, SIZE, **kind) for name, kind in PICTURES.items()}
    peer = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(peer)
    mujoco.mj_forward(peer, data)
    origin = np.array((3.0, 0.5, 1.5))
    aim = np.random.default_rng(0).normal((0.0, 0.0, 1.0), 0.4, size=(RAYS, 3)) - origin
    aim /= np.linalg.norm(aim, axis=1)[:, None]
    geoms, distances = np.zeros(RAYS, np.int32), np.zeros(RAYS)

    def peer_rays(n: int) -> None:
        for _ in range(n):
            mujoco.mj_multiRay(
                peer, data, origin, aim.reshape(-1), None, True, -1, geoms, distances, None, RAYS, mujoco.mjMAXVAL
            )

    cases = [
        Case(name, lambda n, p=painter: [p.draw(q, camera) for _ in range(n)]) for name, painter in painters.items()
    ]
    recording, film = sliding(model), Film(size=SIZE)
    moments = film_times(recording, FILM / 2.0, 1.0)[:FILM]
    cases.append(Case("film", lambda n: [sum(1 for _ in film.pictures(recording, moments)) for _ in range(n)]))
    cases += [
        Case("rays", lambda n: [cast(model, q, origin, aim) for _ in range(n)], worlds=RAYS),
        Case("mujoco", peer_rays, worlds=RAYS),
    ]
    times = measure(cases, much)
    rows = [Row(f"a picture, {name}", times.of(name)) for name in PICTURES]
    rows[0].most = 1.0 / 30.0
    rows.append(Row(f"a film of {FILM} frames", times.of("film"), "s", most=6.0))
    ours = cast(model, q, origin, aim).distance
    met = np.isfinite(ours) & (distances >= 0.0)
    rows.append(Row("MuJoCo's mj_multiRay, a ray", times.of("mujoco")))
    rows.append(Row("a ray", times.of("rays"), beside="MuJoCo's", ratio=times.ratio("rays", "mujoco")))
    rows[-1].residual = float(np.abs(ours[met] / distances[met] - 1.0).max())
    rows[-1].note = f"residual: distances of {met.sum()} hits; planes of MuJoCo's may end"
    settings = {"model": path.name, "from": str(path.parent), "shapes": len(model.solids), "rounds": much.rounds}
    settings |= {"pixels": f"{SIZE[0]} × {SIZE[1]}", "rays": RAYS}
    return Report("pictures", QUESTION, settings, rows, [ours]).finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
