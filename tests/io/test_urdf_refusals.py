"""What the URDF reader refuses, with lines."""

from __future__ import annotations

import pytest

from poise.io.urdf import load_urdf
from poise.model.errors import SceneError
from urdf_models import (
    joint,
    link,
    mesh_link,
    problems,
    robot,
    two,
)


class TestErrors:
    def test_everything_at_once_with_lines(self) -> None:
        xml = robot(link("a", "<inertial><mass value='x'/></inertial>"), link("a"), joint("j", "a", "bb", "revolut"))
        found = problems(xml)
        assert [line for line, _ in found] == [2, 3, 4, 4]
        text = " ".join(message for _, message in found)
        for part in ("<inertial> needs <inertia>", 'link "a" is there twice', 'did you mean "revolute"'):
            assert part in text

    @pytest.mark.parametrize(
        ("xml", "said"),
        [
            (robot(link("arm"), link("b"), joint("j", "amr", "b")), 'did you mean "arm"'),
            (robot(link("a"), link("b"), joint("j", "a", "b"), joint("j", "a", "b")), "there twice"),
            (robot(link("a"), link("b")), '2 links have no parent ("a", "b")'),
            (robot(link("a"), link("b"), joint("j", "a", "b"), joint("k", "b", "a")), "cycle"),
            (
                robot(link("a"), link("b"), link("c"), joint("j", "b", "c"), joint("k", "c", "b")),
                'links "b", "c" form a cycle',
            ),
            (robot(link("a"), joint("j", "a", "a")), "cycle"),
            (robot(link("a"), link("b"), link("c"), joint("j", "a", "c"), joint("k", "b", "c")), "two parents"),
            (robot(link("a"), link("b"), joint("j", "a", "b", "revolute")), "is of type continuous"),
            (robot(link("a"), link("b"), joint("j", "a", "b", "prismatic")), "needs <limit"),
            (robot(link("a"), link("b"), joint("j", "a", "b", content="<axis xyz='0 0 0'/>")), "no direction"),
            (robot(link("a"), link("b"), joint("j", "a", "b", content="<axis xyz='1 0'/>")), "3 numbers"),
            (robot(link("a"), link("b"), joint("j", "a", "b", content="<axis xyz='1 nan 0'/>")), "3 numbers"),
            (robot(link("a"), link("b"), joint("j", "a", "b", content="<origin xyz='0 0 inf'/>")), "finite"),
            (
                robot(link("a"), link("b"), joint("j", "a", "b", "revolute", "<limit lower='2' upper='1'/>")),
                "lower limit 2 is above upper limit 1",
            ),
            (robot(link("a"), link("b"), joint("j", "a", "b", content="<dynamics damping='-1'/>")), "negative"),
            (robot(link("a"), link("b"), joint("j", "a", "b", content="<limit effort='-1'/>")), "negative"),
            (robot(link("a"), link("b"), joint("j", "a", "b", content="<mimic joint='i'/>")), "mimics"),
            (robot(link("a"), link("b"), joint("j", "a", "b", content="<mimic joint='j'/>")), "mimics itself"),
            (robot(link("a"), "<joint name='j' type='fixed'><parent link='a'/></joint>"), "needs <child"),
            (robot(link("a"), "<joint type='fixed'/>"), 'the attribute "name"'),
            (robot("<link/>"), 'the attribute "name"'),
            (robot(link("a"), link("b"), joint("j", "a", "b", "ball")), 'unknown type "ball"'),
            (robot(link("a", "<inertial><mass value='-1'/><inertia ixx='1' iyy='1' izz='1'/></inertial>")), "negative"),
            (robot(link("a", "<inertial><mass value='1'/><inertia ixx='1' iyy='1'/></inertial>")), '"izz"'),
            (robot(link("a", "<collision/>")), "needs a <geometry>"),
            (robot(link("a", "<collision><geometry><box size='1 -1 1'/></geometry></collision>")), "positive"),
            (robot(link("a", "<collision><geometry><box size='1,1,1'/></geometry></collision>")), "3 numbers"),
            (robot(link("a", "<collision><geometry><sphere/></geometry></collision>")), '"radius"'),
            (robot(link("a", "<visual><geometry><mesh/></geometry></visual>")), '"filename"'),
            (robot(mesh_link("x.stl", scale="1 0 1")), "scale"),
            (robot(), "no <link>"),
            ("<mujoco/>", "found <mujoco>"),
            (robot("<xacro:include filename='x'/>", link("a")), "xacro"),
            (robot(link("${name}")), "expand it first"),
            ("<!DOCTYPE r [<!ENTITY a 'b'>]><robot><link name='&a;'/></robot>", "entities"),
        ],
    )
    def test_refused_with_a_line(self, xml: str, said: str) -> None:
        found = problems(xml)
        assert any(said in message for _, message in found), found
        assert all(line is not None for line, _ in found)

    def test_one_mistake_is_one_problem(self) -> None:
        assert len(problems(robot(link("a"), link("b"), joint("j", "a", "b", content="<axis xyz='x 0 0'/>")))) == 1
        assert len(problems(robot(link("a", "<collision><geometry><sphere radius='r'/></geometry></collision>")))) == 1

    def test_malformed_xml(self, tmp_path) -> None:
        file = tmp_path / "broken.urdf"
        file.write_text("<robot name='r'>\n<link name='a'>\n</robot>")
        with pytest.raises(SceneError, match=r"broken.urdf:3: malformed XML: mismatched tag"):
            load_urdf(file)

    def test_options(self) -> None:
        with pytest.raises(SceneError, match='"fixed" or "free"'):
            two(root="floating")
        for density in (-1.0, 0, float("nan"), "heavy", True, (1.0,)):
            with pytest.raises(SceneError, match="density: must be a positive number in kg/m³, found"):
                two(density=density)

    @pytest.mark.parametrize("source", [3, None, b"<robot/>"])
    def test_what_is_no_source(self, source) -> None:
        with pytest.raises(SceneError, match="load_urdf takes the path of a file or a string of URDF, found"):
            load_urdf(source)

    def test_missing_file(self, tmp_path) -> None:
        with pytest.raises(SceneError, match="no such file"):
            load_urdf(tmp_path / "gone.urdf")
        with pytest.raises(SceneError, match="directory"):
            load_urdf(tmp_path)
