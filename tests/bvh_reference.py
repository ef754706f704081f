"""A second reader of BVH, as plain as can be, with rotation matrices through SciPy; and a file to read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

TEXT = """HIERARCHY
ROOT Hips
{
\tOFFSET 0.5 0 0
\tCHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
\tJOINT mixamorig:Spine 1
\t{
\t\tOFFSET 0 10 -0.5
\t\tCHANNELS 3 Yrotation Xrotation Zrotation
\t\tJOINT Head
\t\t{
\t\t\tOFFSET 0 40 1.25
\t\t\tCHANNELS 6 Xrotation Yposition Yrotation Zposition Zrotation Xposition
\t\t\tEnd Site
\t\t\t{
\t\t\t\tOFFSET 0 20 0
\t\t\t}
\t\t}
\t}
\tJOINT LeftLeg
\t{
\t\tOFFSET 9 -5 0
\t\tCHANNELS 3 Zrotation Yrotation Xrotation
\t\tJOINT LeftFoot
\t\t{
\t\t\tOFFSET 0 -80 1e0
\t\t\tCHANNELS 1 Xrotation
\t\t\tEnd Site
\t\t\t{
\t\t\t\tOFFSET 0 -5 15
\t\t\t}
\t\t}
\t}
}
MOTION
Frames: 5
Frame Time: 0.025
"""


def example(frames: int = 5, seed: int = 3) -> str:
    """A small file: five joints, of which one has six mixed channels and one has a single one."""
    rng = np.random.default_rng(seed)
    rows = np.cumsum(rng.normal(0.0, 3.0, (frames, 19)), axis=0) + rng.uniform(-60.0, 60.0, 19)
    rows[:, :3] += (0.0, 90.0, 0.0)
    # positions of the head are about its offset
    rows[:, [10, 12, 14]] = np.array((40.0, 1.25, 0.0)) + rng.normal(0.0, 0.5, (frames, 3))
    text = TEXT.replace("Frames: 5", f"Frames: {frames}")
    lines = [" ".join(f"{x:.4f}" for x in row) for row in rows]
    return text + "\n".join([*lines, ""])


@dataclass
class Plain:
    names: list = field(default_factory=list)
    parents: list = field(default_factory=list)
    offsets: list = field(default_factory=list)
    channels: list = field(default_factory=list)
    tips: list = field(default_factory=list)
    frames: np.ndarray | None = None
    frame_time: float = 0.0

    def positions(self) -> np.ndarray:
        """(frames, joints, 3) in the file's axes and units."""
        count = len(self.frames)
        places, turns = [], []
        column = 0
        for index, parent in enumerate(self.parents):
            offset = np.tile(np.array(self.offsets[index], float), (count, 1))
            turn = np.tile(np.eye(3), (count, 1, 1))
            for channel in self.channels[index]:
                values = self.frames[:, column]
                column += 1
                axis = "xyz".index(channel[0].lower())
                if channel.endswith("position"):
                    offset[:, axis] = values
                else:
                    turn = turn @ Rotation.from_rotvec(np.outer(np.deg2rad(values), np.eye(3)[axis])).as_matrix()
            if parent < 0:
                places.append(offset)
                turns.append(turn)
            else:
                places.append(places[parent] + np.einsum("nij,nj->ni", turns[parent], offset))
                turns.append(turns[parent] @ turn)
        return np.stack(places, axis=1)


def read_plainly(text: str) -> Plain:
    """Read a good file; anything may happen with a bad one."""
    lines = text.replace("\r", "\n").split("\n")
    split = [line.strip() for line in lines].index("MOTION")
    plain = Plain()
    stack: list[int] = []
    in_site = False
    for line in lines[1:split]:
        words = line.split()
        if not words:
            continue
        if words[0] in ("ROOT", "JOINT"):
            plain.names.append(line.strip()[len(words[0]) :].strip())
            plain.parents.append(stack[-1] if stack else -1)
            plain.channels.append([])
            plain.offsets.append(None)
            stack.append(len(plain.names) - 1)
        elif words[0] == "End":
            in_site = True
        elif words[0] == "OFFSET" and in_site:
            plain.tips.append((stack[-1], tuple(float(word) for word in words[1:])))
        elif words[0] == "OFFSET":
            plain.offsets[stack[-1]] = tuple(float(word) for word in words[1:])
        elif words[0] == "CHANNELS":
            plain.channels[stack[-1]] = words[2:]
        elif words[0] == "}" and in_site:
            in_site = False
        elif words[0] == "}":
            stack.pop()
    rest = [line for line in lines[split + 1 :] if line.strip()]
    plain.frame_time = float(rest[1].split(":")[1])
    plain.frames = np.array([[float(word) for word in line.split()] for line in rest[2:]])
    return plain
