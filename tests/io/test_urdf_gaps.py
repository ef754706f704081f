"""Everything of a URDF file that is not taken over is in the one warning of the file."""

from __future__ import annotations

import numpy as np
import pytest

from poise.io import LossWarning
from poise.io.meshes import is_convex
from poise.io.urdf import load_urdf
from poise.model.hull import convex_hull
from urdf_models import FACES, INERTIAL, TETRAHEDRON, joint, link, mesh_link, robot, text_stl, two

BALL = "<sphere radius='1'/>"
BOX = "<geometry><box size='1 1 1'/></geometry>"


def hinge(content: str, kind: str = "continuous") -> str:
    return robot(link("a"), link("b"), joint("j", "a", "b", kind, content))


@pytest.mark.parametrize(
    ("xml", "said"),
    [
        (robot(link("a"), "<gazebo/><gazebo/>"), "elements ignored: 2 <gazebo>."),
        (robot(link("a", INERTIAL + "<contact/>")), "elements ignored: 1 <contact> in links."),
        (hinge("<safety_controller k_velocity='1'/>"), "elements ignored: 1 <safety_controller> in joints."),
        (
            robot(link("a", f"{INERTIAL}<collision>{BOX}<contact_coefficients mu='1'/></collision>")),
            "elements ignored: 1 <contact_coefficients> in collisions.",
        ),
        (
            robot(link("a", f"{INERTIAL}<visual><geometry><box size='1 1 1'/><cone/></geometry></visual>")),
            "elements ignored: 1 <cone> in geometries.",
        ),
        (
            robot(link("a", INERTIAL.replace("<mass", "<origin quat_xyzw='0 0 1 0'/><mass"))),
            "attributes ignored: 1 quat_xyzw of <origin>.",
        ),
        (robot("<link name='a' type='arm'/>"), "attributes ignored: 1 type of <link>."),
        (hinge("<limit acceleration='3'/>"), "attributes ignored: 1 acceleration of <limit>."),
        (robot(link("a", INERTIAL * 2)), "as only the first one counts: 1 <inertial> in links."),
        (
            robot(link("a", f"{INERTIAL}<visual>{BOX.replace('</', BALL + '</')}</visual>")),
            "as only the first one counts: 1 <sphere> in geometries.",
        ),
        (hinge("<limit effort='1' velocity='2'/>"), "velocities in <limit> not enforced"),
        (hinge("<limit velocity='2'/>"), "velocities in <limit> not enforced"),
        (hinge("<limit lower='-1' upper='1'/>"), "ranges in <limit> ignored"),
        (hinge("<limit lower='-1' upper='1' effort='inf'/>", "prismatic"), "the effort in <limit> is infinite"),
        (
            robot(*(link(n) for n in "abc"), joint("j", "a", "b"), joint("k", "b", "c", "fixed", "<mimic joint='j'/>")),
            "<mimic> of fixed joints ignored: k.",
        ),
        (
            robot("<material name='red'><color rgba='255 0 0 1'/></material>", link("a")),
            'colours taken as 0 or 1 where they are outside: "255 0 0 1" of material "red".',
        ),
    ],
)
def test_listed_in_the_warning(xml: str, said: str) -> None:
    with pytest.warns(LossWarning) as caught:
        scene = load_urdf(xml)
    assert len(caught) == 1
    assert said in str(caught[0].message)
    assert any(said in sentence for sentence in scene.unsupported)


@pytest.mark.filterwarnings("error")
def test_no_warning_where_all_is_taken_over() -> None:
    content = (
        "<origin xyz='1 0 0' rpy='0 0 1'/><axis xyz='0 0 1'/><dynamics damping='1' friction='2'/>"
        "<limit lower='-1' upper='1' effort='3'/>"
    )
    assert two("revolute", content).unsupported == []


def test_the_same_item_is_counted() -> None:
    visual = f"<visual>{BOX}<material name='metal'><color rgba='1 1 1 1'/><texture/></material></visual>"
    with pytest.warns(LossWarning):
        scene = load_urdf(robot(link("a", INERTIAL + visual * 3)))
    assert scene.unsupported == ["textures of materials not kept: metal (3 times)."]


class TestHulls:
    def test_concave_collision_meshes_are_listed(self, tmp_path) -> None:
        # the last corner of a tetrahedron is joined to its middle: a dent
        dented = np.vstack([TETRAHEDRON, TETRAHEDRON.mean(axis=0)])
        faces = [*FACES[:3], (1, 2, 4), (2, 3, 4), (3, 1, 4)]
        lines = [f"v {x} {y} {z}" for x, y, z in dented] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in faces]
        (tmp_path / "dented.obj").write_text("\n".join(lines))
        with pytest.warns(LossWarning, match="collide as their convex hulls: .*dented.obj"):
            load_urdf(robot(mesh_link(str(tmp_path / "dented.obj"))))

    @pytest.mark.filterwarnings("error")
    def test_convex_ones_are_not(self, tmp_path) -> None:
        (tmp_path / "solid.stl").write_bytes(text_stl())
        assert load_urdf(robot(mesh_link(str(tmp_path / "solid.stl"), scale="1 -2 1e-3"))).unsupported == []

    @pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
    def test_is_convex(self, size: float) -> None:
        points = np.random.default_rng(1).normal(size=(300, 3))
        points *= size / np.linalg.norm(points, axis=1, keepdims=True)
        faces = convex_hull(points)
        assert is_convex(points, faces)
        points[7] *= 0.9
        assert not is_convex(points, faces)
