"""BVH beside pybvh: joints and positions in every frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pybvh
import pytest

from poise.io.bvh import read_bvh

SMALL = """HIERARCHY
ROOT Hips
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Chest
  {
    OFFSET 0 10 2
    CHANNELS 3 Yrotation Xrotation Zrotation
    JOINT Arm
    {
      OFFSET 8 5 0
      CHANNELS 3 Xrotation Zrotation Yrotation
      End Site
      {
        OFFSET 20 0 0
      }
    }
  }
}
MOTION
Frames: 3
Frame Time: 0.04
1 2 3 10 20 30 -40 50 -60 70 80 -95
2 3 4 100 -20 35 170 5 60 -70 20 95
5 2 1 200 85 30 -40 -50 -160 7 8 9
"""


def texts() -> dict[str, str]:
    """A file of our own, and those of others where a folder of them lies beside the checkout."""
    found = sorted((Path(__file__).parents[3] / "shared" / "data" / "bvh").glob("*/*.bvh"))
    return {"small": SMALL} | {file.stem: file.read_bytes().decode() for file in found}


@pytest.mark.parametrize("text", texts().values(), ids=texts())
def test_joints_are_where_pybvh_has_them(text, tmp_path):
    (tmp_path / "a.bvh").write_text(text)
    theirs = pybvh.read_bvh_file(tmp_path / "a.bvh")
    ours = read_bvh(text, None, units=1.0, up="z", drop_tpose=False)
    assert list(theirs.joint_names) == list(ours.skeleton.names)
    positions = theirs.joint_positions()
    off = np.abs(ours.world_positions() - positions).max()
    print(f"\n{len(positions)} frames, {positions.shape[1]} joints: {off:.1e} apart, of {np.abs(positions).max():.0f}")
    # both multiply some ten rotations and add as many offsets
    np.testing.assert_allclose(ours.world_positions(), positions, atol=1e-14 * np.abs(positions).max() * 20)
