"""How surfaces combine, in files: read, written, and merged from files with different rules."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.constraints.combining import combined
from poise.io.losses import LossWarning
from poise.io.mjcf import load_mjcf
from poise.model.model import Model
from poise.model.scene import Scene

ROBOT = """
<mujoco model="robot">
  <worldbody>
    <body name="trunk" pos="0 0 1"><freejoint/>
      <geom name="belly" size="0.1" friction="0.2 0.01 0.001" condim="4"/>
      <geom name="foot" pos="0 0 -0.2" size="0.05" friction="1.5 0.02 0.003" condim="6" priority="2"/>
      <geom name="oil" pos="0 0 0.2" size="0.05" condim="1"/>
    </body>
  </worldbody>
</mujoco>
"""


def coefficients(model: Model, first: str, second: str) -> tuple[float, ...]:
    """Of the contact of two shapes."""
    names = model.solids.names
    return tuple(round(number, 12) for number in combined(model.solids, names.index(first), names.index(second)))


def with_robot(folder: Path, options: str = "") -> Scene:
    """A scene with a floor and a robot of an MJCF file."""
    (folder / "robot.xml").write_text(ROBOT)
    (folder / "scene.yaml").write_text(
        f"ground: {{friction: 0.8}}\n{options}\ncharacters:\n  - {{name: one, kind: file, file: robot.xml}}\n"
    )
    return poise.load(folder / "scene.yaml")


def test_mjcf_takes_the_larger_coefficient_and_honours_priority_and_condim() -> None:
    model = load_mjcf(ROBOT).compile()
    assert coefficients(model, "belly", "foot") == (1.5, 0.02, 0.003, 0.0)
    assert coefficients(model, "belly", "oil") == (1.0, 0.01, 0.0, 0.0)
    assert coefficients(model, "oil", "oil") == (0.0, 0.0, 0.0, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LossWarning)
        load_mjcf(ROBOT)


def test_a_merged_robot_keeps_the_rule_of_its_file_and_a_warning_says_so(tmp_path: Path) -> None:
    with pytest.warns(
        LossWarning, match=r'friction_combine is "maximum" in "robot.xml" and "geometric" here'
    ) as warned:
        scene = with_robot(tmp_path)
    assert len(warned) == 1
    assert sum("friction_combine" in sentence for sentence in scene.unsupported) == 1
    model = scene.compile()
    assert coefficients(model, "belly", "oil") == (1.0, 0.01, 0.0, 0.0)
    ground = model.solids.names[0]
    assert coefficients(model, ground, "belly") == (0.8, 0.01, 0.0, 0.0)
    assert coefficients(model, ground, "foot") == (1.5, 0.02, 0.003, 0.0)


def test_files_that_agree_are_merged_without_a_word(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", LossWarning)
        scene = with_robot(tmp_path, "friction_combine: maximum")
    assert scene.friction_combine == "maximum"
    assert all(shape.material.friction_combine is None for body in scene.bodies for shape in body.shapes)


def test_urdf_has_the_geometric_mean(tmp_path: Path) -> None:
    file = tmp_path / "arm.urdf"
    file.write_text("<robot name='arm'><link name='base'/></robot>")
    assert poise.load(file).friction_combine == "geometric"


def rough() -> Scene:
    """Surfaces with all that a material can say of friction."""
    scene = Scene(friction_combine="average", rolling_combine="minimum", restitution_combine="multiply")
    scene.add_ground(friction=0.5)
    material = poise.Material(
        0.3, 0.1, 0.02, 0.01, friction_combine="minimum", rolling_combine="maximum", priority=3, condim=4
    )
    scene.add(poise.sphere(0.1, material=material), name="ball", position=(0, 0, 1))
    return scene


def test_yaml_keeps_everything(tmp_path: Path) -> None:
    scene = rough()
    assert scene.save(tmp_path / "rough.yaml") == []
    again = poise.load(tmp_path / "rough.yaml")
    assert again.rules == scene.rules
    assert again.body("ball").shapes[0].material == scene.body("ball").shapes[0].material
    assert again.compile().digest() == scene.compile().digest()


@pytest.mark.parametrize(
    ("line", "field"), [("friction_combine: largest", "friction_combine"), ("rolling_combine: multiply", "rolling")]
)
def test_wrong_words_of_yaml_are_refused_with_their_line(tmp_path: Path, line: str, field: str) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(f"ground: true\n{line}\n")
    with pytest.raises(poise.SceneError, match=rf"wrong.yaml, line 2.*{field}|wrong.yaml:2.*{field}"):
        poise.load(file)


def test_mjcf_is_written_with_priority_and_condim(tmp_path: Path) -> None:
    scene = load_mjcf(ROBOT)
    assert scene.save(tmp_path / "robot.xml") == []
    first, again = scene.compile().solids, poise.load(tmp_path / "robot.xml").compile().solids
    assert np.array_equal(first.surface_rules, again.surface_rules)
    assert np.array_equal(first.surface_kind, again.surface_kind)
    assert np.array_equal(first.friction, again.friction)


def test_mjcf_says_which_rules_it_has_not(tmp_path: Path) -> None:
    scene = Scene()
    scene.add_ground(friction=0.5)
    scene.add(poise.box(1, 1, 1), name="box", position=(0, 0, 0.5))
    with pytest.warns(LossWarning, match='Contacts whose friction combines by "geometric" have the larger one'):
        scene.save(tmp_path / "box.xml")
    scene.body("ground").shapes[0].material.friction = 0.8
    assert scene.save(tmp_path / "same.xml") == []  # of equal coefficients any mean is the same
    scene.friction_combine = "maximum"
    scene.body("ground").shapes[0].material.friction = 0.5
    assert scene.save(tmp_path / "larger.xml") == []
