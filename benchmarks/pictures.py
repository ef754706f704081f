"""A picture of a humanoid on the floor, and rays at it beside MuJoCo's.

640 × 480 pixels on one core, everything included: poses of the shapes, light, shadows, bytes. Rays go from one point to
points about the humanoid, in float64; MuJoCo casts them by `mj_multiRay`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import mujoco
import numpy as np
from _common import Case, Report, Row, arguments, effort, measure
from _trees import find_humanoid, load_model

from poise.collision.rays import cast
from poise.view.render import Camera, Painter

QUESTION = "what a picture costs, and a ray"
SIZE = (640, 480)
RAYS = 8192
PICTURES = {
    "one sample a pixel": {"smooth": False},
    "four samples at edges": {"smooth": True},
    "one sample, no shadows": {"smooth": False, "shadows": False},
}


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
    cases += [
        Case("rays", lambda n: [cast(model, q, origin, aim) for _ in range(n)], worlds=RAYS),
        Case("mujoco", peer_rays, worlds=RAYS),
    ]
    times = measure(cases, much)
    rows = [Row(f"a picture, {name}", times.of(name)) for name in PICTURES]
    rows[0].most = 1.0 / 30.0
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
