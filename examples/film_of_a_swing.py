"""A humanoid swings from one hand: a film of the demo, drawn without a graphics card.

python examples/film_of_a_swing.py
"""

import time
from pathlib import Path

import poise
from poise.cli.demos.swing import hanging_humanoid, pose
from poise.view import Camera, Painter, save_gif

RATE = 20.0
"""Frames a second."""


def main(path: Path = Path("swing.gif"), seconds: float = 3.0, size: tuple[int, int] = (480, 360)) -> Path:
    scene, _ = hanging_humanoid()
    scene.add_ground()
    model = scene.compile()
    state, tone = pose(model)
    simulation = poise.dynamics.Simulation(model, state, dt=1e-3, method="rk4")
    simulation.drive = tone
    steps = round(1.0 / RATE / simulation.dt)
    motion = simulation.run(seconds - steps * simulation.dt, every=steps)

    painter = Painter(model, size)
    camera = Camera.looking_at(model, motion.q[::2], side=(0.45, -1.0, 0.25), margin=1.05, aspect=size[0] / size[1])
    painter.draw(motion.q[0], camera)  # compile, once for this machine
    start = time.process_time()
    frames = [painter.draw(q, camera) for q in motion.q]
    drawn = (time.process_time() - start) / len(frames)
    save_gif(path, frames, 1.0 / RATE)
    print(f"{len(frames)} frames, {1e3 * drawn:.1f} ms each; {path} has {path.stat().st_size / 1e3:.0f} kB")
    return path


if __name__ == "__main__":
    main()
