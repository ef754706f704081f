"""`poise info`: what a scene file holds, and how bad files are answered."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import poise
from poise.cli import info
from poise.cli.main import app

run = CliRunner().invoke

MJCF = """
<mujoco model="arm">
  <option gravity="0 0 -1.62" timestep="0.005"/>
  <worldbody>
    <light name="sun"/>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" type="ball"/>
      <geom type="sphere" size="0.1" mass="2"/>
      <body name="lower" pos="0 0 -0.5">
        <joint name="elbow" type="hinge" axis="0 1 0" range="0 90" limited="true"/>
        <geom type="box" size="0.1 0.1 0.2" mass="1.25"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

URDF = """<robot name="door">
  <link name="frame"/>
  <link name="leaf">
    <inertial><mass value="4"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="hinge" type="revolute">
    <parent link="frame"/><child link="leaf"/><axis xyz="0 0 1"/>
    <limit lower="-0.5" upper="1.5" effort="1" velocity="1"/>
  </joint>
</robot>
"""


@pytest.fixture
def write(tmp_path):
    """Writes a file and gives its path."""

    def writer(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return writer


def test_json_of_mjcf(write):
    done = run(app, ["info", write("arm.xml", MJCF), "--json"])
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["name"], facts["nq"], facts["nv"]) == ("arm", 5, 4)
    assert facts["mass"] == pytest.approx(3.25, rel=1e-12)
    assert facts["gravity"] == [0, 0, -1.62]
    assert facts["dt"] == 0.005
    bodies = {body["name"]: body for body in facts["bodies"]}
    assert bodies["lower"]["parent"] == "upper"
    assert bodies["lower"]["mass"] == pytest.approx(1.25, rel=1e-12)
    shoulder, elbow = facts["joints"]
    assert (shoulder["kind"], elbow["kind"]) == ("ball", "hinge")
    assert shoulder["limits"] == [[None, None]] * 3
    assert elbow["limits"] == [pytest.approx([0, 1.5707963267948966])]
    assert any("light" in sentence for sentence in facts["unsupported"])


def test_text_of_mjcf(write):
    done = run(app, ["info", write("arm.xml", MJCF)])
    assert done.exit_code == 0, done.stderr
    for part in ("arm (", "nq 5, nv 4", "3.25 kg", "1 ball, 1 hinge", "hinge, [0, 1.571]", "Not kept"):
        assert part in done.stdout


def test_ranges_of_balls_are_told(write):
    done = run(app, ["info", write("arm.xml", MJCF.replace('type="ball"', 'type="ball" range="0 30" limited="true"'))])
    assert done.exit_code == 0, done.stderr
    assert "ball, cone 0.5236, 0.5236; twist [-0.5236, 0.5236]\n" in done.stdout


def test_centres_of_limits_are_told():
    scene = poise.Scene()
    limits = {"cone": 0.5, "twist": (-0.1, 0.2)}
    scene.ball(None, poise.sphere(0.1), name="arm", **limits, limit_centre=(0.8, 0.6, 0, 0))
    scene.ball(None, poise.sphere(0.1), name="leg", **limits)
    model = scene.compile()
    told = [info._joint(model, k) for k in range(2)]
    assert told[0]["limit_centre"] == pytest.approx([0.8, 0.6, 0, 0])
    assert info._limits(told[0]) == ", cone 0.5, 0.5; twist [-0.1, 0.2]; from (0.8, 0.6, 0, 0)"
    assert info._limits(told[1]) == ", cone 0.5, 0.5; twist [-0.1, 0.2]"


def test_urdf(write):
    done = run(app, ["info", write("door.urdf", URDF), "--json"])
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["nv"] == 1
    assert facts["joints"][0]["limits"] == [[-0.5, 1.5]]


def call(*arguments):
    command = [sys.executable, "-m", "poise", "info", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


BAD = {
    "empty": "",
    "not XML": "hello",
    "cut off": MJCF[: len(MJCF) // 2],
    "neither": "<html/>",
    "wrong value": MJCF.replace('mass="2"', 'mass="two"'),
    "negative mass": URDF.replace('value="4"', 'value="-4"'),
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_bad_file_is_one_clear_message(write, text):
    path = write("bad.xml", text)
    done = call(path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("poise: ")
    assert "bad.xml" in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_file_is_named(tmp_path):
    done = call(str(tmp_path / "nowhere.xml"))
    assert done.returncode == 1
    assert "nowhere.xml" in done.stderr
    assert "Traceback" not in done.stderr


def test_folder_is_not_a_scene(tmp_path):
    done = call(str(tmp_path))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_link_that_leads_nowhere(tmp_path):
    path = tmp_path / "link.xml"
    path.symlink_to("/nowhere/scene.xml")
    done = call(str(path))
    assert done.returncode == 1
    assert "link.xml" in done.stderr
    assert "Traceback" not in done.stderr


STRANGE = URDF.replace('izz="1"', 'izz="5"').replace(' velocity="1"', "")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("choice", "said"), [([], "leaf by 2.12"), (["--inertia", "accept"], "kept as they are: leaf.")]
)
def test_inertias_that_no_body_has(write, choice, said):
    done = run(app, ["info", write("door.urdf", STRANGE), *choice])
    assert done.exit_code == 0, done.output
    assert "Not kept as it is (1)" in done.stdout
    assert said in done.stdout


def test_strict_inertias(write):
    done = run(app, ["info", write("door.urdf", STRANGE), "--inertia", "strict"])
    assert done.exit_code == 1
    assert 'door.urdf:4: link "leaf"' in done.stderr
    done = run(app, ["info", write("arm.xml", MJCF), "--inertia", "strict"])
    assert 'MJCF files take no option "inertia"' in done.stderr


def test_pictures_say_how_much_of_a_file_is_not_kept(write, tmp_path):
    done = run(app, ["render", write("door.urdf", STRANGE), "-o", str(tmp_path / "door.png"), "--size", "32x32"])
    assert done.exit_code == 0, done.output
    assert "poise: 1 thing of the file is not kept as it is; see poise info" in done.stderr
