"""What the URDF reader keeps, changes and lists."""

from __future__ import annotations

import math

import numpy as np
import pytest

from poise.io.urdf import load_urdf
from poise.model.compile import compile_scene
from poise.model.shapes import Box, Capsule, ConvexMesh, Cylinder, Sphere, TriangleMesh
from scene_kinematics import rest_q, rotation, widths, world_poses
from urdf_models import (
    INERTIAL,
    TETRAHEDRON,
    binary_stl,
    joint,
    link,
    mesh_link,
    obj,
    problems,
    robot,
    text_stl,
    two,
)


class TestJoints:
    def test_pose_and_axis(self) -> None:
        scene = two(
            "revolute", "<origin xyz='1 2 3' rpy='0.1 0.2 0.3'/><axis xyz='0 2 0'/><limit lower='-1' upper='2'/>"
        )
        body = scene.bodies[1]
        assert (body.name, body.parent, body.position) == ("b", "a", (1.0, 2.0, 3.0))
        # fixed-axis roll, pitch, yaw: Rz(0.3) Ry(0.2) Rx(0.1)
        cr, sr, cp, sp, cy, sy = (f(x) for x in (0.1, 0.2, 0.3) for f in (math.cos, math.sin))
        Rx = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
        Ry = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
        Rz = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
        assert np.allclose(rotation(body.quat_wxyz), Rz @ Ry @ Rx)
        (hinge,) = body.joints
        assert (hinge.kind, hinge.name, hinge.axis, hinge.limits) == ("hinge", "j", (0.0, 1.0, 0.0), (-1.0, 2.0))
        assert hinge.line == 4

    @pytest.mark.parametrize(
        ("kind", "poise_kind", "nq"),
        [("continuous", "hinge", 1), ("prismatic", "slider", 1), ("planar", "planar", 3), ("floating", "free", 7)],
    )
    def test_kinds(self, kind: str, poise_kind: str, nq: int) -> None:
        scene = two(kind, "<limit lower='0' upper='1'/>")
        assert scene.bodies[1].joints[0].kind == poise_kind
        assert widths(scene)[0] == nq
        assert compile_scene(scene).nq == nq

    def test_fixed_has_no_joint(self) -> None:
        scene = two("fixed")
        assert scene.bodies[1].joints == []
        assert compile_scene(scene).nq == 0

    def test_axis_defaults_to_x(self) -> None:
        assert two().bodies[1].joints[0].axis == (1.0, 0.0, 0.0)

    def test_dynamics_and_effort(self) -> None:
        scene = two("continuous", "<dynamics damping='0.5' friction='0.2'/><limit effort='30' velocity='5'/>")
        (hinge,) = scene.bodies[1].joints
        assert (hinge.damping, hinge.friction, hinge.limits) == (0.5, 0.2, None)
        (drive,) = scene.actuators
        assert (drive.target, drive.force_range, drive.options) == ("j", (-30.0, 30.0), {"velocity_limit": 5.0})

    def test_endless_limits(self) -> None:
        assert two("revolute", "<limit lower='-inf' upper='inf' effort='inf'/>").bodies[1].joints[0].limits is None

    def test_limit_without_range_is_said(self) -> None:
        scene = two("revolute", "<limit effort='1' velocity='1'/>")
        assert scene.bodies[1].joints[0].limits == (0.0, 0.0)
        assert any("cannot move" in sentence for sentence in scene.unsupported)

    def test_mimic(self) -> None:
        scene = load_urdf(
            robot(
                link("a"),
                link("b"),
                link("c"),
                joint("j", "a", "b"),
                joint("k", "b", "c", content="<mimic joint='j' multiplier='-2' offset='0.1'/>"),
            )
        )
        (mimic,) = scene.equalities
        assert (mimic.kind, mimic.first, mimic.second) == ("mimic", "k", "j")
        assert mimic.options == {"multiplier": -2.0, "offset": 0.1}

    def test_root(self) -> None:
        assert two().bodies[0].motion == "fixed"
        scene = two(root="free")
        assert [j.kind for j in scene.bodies[0].joints] == ["free"]
        assert widths(scene) == (8, 7)

    def test_depth_first_in_the_order_of_joints(self) -> None:
        names = ["c", "d", "a", "b", "e"]
        joints = [joint("1", "a", "e"), joint("2", "a", "c"), joint("3", "e", "b"), joint("4", "c", "d")]
        scene = load_urdf(robot(*joints, *(link(name) for name in names)))
        assert [body.name for body in scene.bodies] == ["a", "e", "b", "c", "d"]

    def test_long_chain(self) -> None:
        count = 3000
        links = [link(f"l{i}") for i in range(count)]
        joints = [joint(f"j{i}", f"l{i}", f"l{i + 1}") for i in range(count - 1)]
        assert len(load_urdf(robot(*links, *joints)).bodies) == count

    def test_floating_joint_starts_at_its_origin(self) -> None:
        scene = two("floating", "<origin xyz='1 2 3'/>")
        assert world_poses(scene, rest_q(scene))["b"][1] == pytest.approx((1, 2, 3))


class TestLinks:
    def test_inertia(self) -> None:
        content = (
            "<inertial><origin xyz='1 2 3' rpy='0 0 1.5707963267948966'/><mass value='4'/>"
            "<inertia ixx='1' iyy='2' izz='2.5' ixy='0.1' ixz='0.2' iyz='0.3'/></inertial>"
        )
        inertia = load_urdf(robot(link("a", content))).bodies[0].inertia
        assert (inertia.mass, inertia.com) == (4.0, (1.0, 2.0, 3.0))
        assert (inertia.moments, inertia.products) == ((1.0, 2.0, 2.5), (0.1, 0.2, 0.3))
        assert inertia.quat_wxyz == pytest.approx((math.sqrt(0.5), 0, 0, math.sqrt(0.5)))

    def test_shapes(self) -> None:
        content = INERTIAL + "".join(
            f"<collision name='c{i}'><origin xyz='0 0 {i}'/><geometry>{solid}</geometry></collision>"
            for i, solid in enumerate(
                [
                    "<box size='1 2 3'/>",
                    "<sphere radius='0.5'/>",
                    "<cylinder radius='0.1' length='2'/>",
                    "<capsule radius='0.1' length='2'/>",
                ]
            )
        )
        box, sphere, cylinder, capsule = load_urdf(robot(link("a", content))).bodies[0].shapes
        assert isinstance(box, Box)
        assert box.size == (1.0, 2.0, 3.0)
        assert isinstance(sphere, Sphere)
        assert sphere.radius == 0.5
        assert isinstance(cylinder, Cylinder)
        assert isinstance(capsule, Capsule)
        assert (capsule.radius, capsule.length, capsule.position, capsule.name) == (0.1, 2.0, (0.0, 0.0, 3.0), "c3")
        assert all(shape.group == 1 and shape.mask == 1 for shape in (box, sphere, cylinder, capsule))

    def test_visual_is_only_looked_at(self) -> None:
        content = (
            INERTIAL + "<visual><geometry><sphere radius='1'/></geometry><material name='red'/></visual>"
            "<collision><geometry><sphere radius='2'/></geometry></collision>"
        )
        scene = load_urdf(robot("<material name='red'><color rgba='1 0 0 0.5'/></material>", link("a", content)))
        collision, visual = scene.bodies[0].shapes
        assert (visual.mask, visual.group, visual.density, visual.color) == (0, 0, 0.0, (1.0, 0.0, 0.0, 0.5))
        assert (collision.mask, collision.density, collision.color[3]) == (1, 0.0, 0.0)
        assert scene.bodies[0].inertia.mass == 2.0

    def test_link_without_inertial_weighs_nothing(self) -> None:
        content = "<collision><geometry><box size='1 1 1'/></geometry></collision>"
        scene = load_urdf(robot(link("a", content)))
        assert scene.bodies[0].inertia.mass == 0.0
        assert any("weightless" in sentence and sentence.endswith(": a.") for sentence in scene.unsupported)

    def test_density_weighs_it(self) -> None:
        content = "<collision><geometry><box size='1 1 1'/></geometry></collision>"
        visual = "<visual><geometry><box size='5 5 5'/></geometry></visual>"
        xml = robot(link("a"), link("b", content + visual), joint("j", "a", "b"))
        model = compile_scene(load_urdf(xml, density=300.0))
        assert model.body_mass == pytest.approx([2.0, 300.0])

    def test_what_is_ignored_is_listed(self) -> None:
        xml = robot(
            link(
                "a", INERTIAL + "<visual><geometry><ellipsoid radii='1 1 1'/></geometry><material name='m'/></visual>"
            ),
            link("b"),
            joint("j", "a", "b", content="<calibration rising='0'/><safety_controller k_velocity='1'/>"),
            "<transmission name='t'/><transmission name='u'/><gazebo/>",
            "<material name='wood'><texture filename='wood.png'/></material>",
        )
        said = " ".join(load_urdf(xml).unsupported)
        for part in (
            "<ellipsoid>",
            "1 <calibration>",
            "1 <safety_controller>",
            "2 <transmission>",
            "1 <gazebo>",
            "texture",
        ):
            assert part in said
        assert 'materials that are not defined, grey is shown: "m" in link "a".' in said

    def test_nothing_to_list(self) -> None:
        assert two().unsupported == []

    def test_prefixes_are_tolerated(self) -> None:
        xml = robot(link("a")).replace("<link", "<u:link").replace("</link", "</u:link")
        assert [body.name for body in load_urdf(xml.replace("<robot", "<robot xmlns:u='http://u'")).bodies] == ["a"]


class TestMeshes:
    @pytest.mark.parametrize(
        ("name", "content"),
        [("t.stl", binary_stl()), ("T.STL", text_stl()), ("t.obj", obj())],
        ids=["binary", "text", "obj"],
    )
    def test_formats(self, tmp_path, name: str, content: bytes) -> None:
        (tmp_path / name).write_bytes(content)
        file = tmp_path / "r.urdf"
        file.write_text(robot(mesh_link(name, scale="2 2 2"), ""))
        (shape,) = load_urdf(file).bodies[0].shapes
        assert isinstance(shape, ConvexMesh)
        assert sorted(map(tuple, shape.vertices.tolist())) == sorted(map(tuple, (2 * TETRAHEDRON).tolist()))
        assert compile_scene(load_urdf(file)).body_mass == pytest.approx([2.0])

    def test_mirrored_visual_keeps_its_outside_out(self, tmp_path) -> None:
        (tmp_path / "t.obj").write_bytes(obj())
        file = tmp_path / "r.urdf"
        file.write_text(robot(mesh_link("t.obj", "visual", scale="-1 1 1")))
        (shape,) = load_urdf(file).bodies[0].shapes
        triangles = shape.vertices[shape.faces]
        volume = np.einsum("ij,ij->", triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2])) / 6
        assert volume == pytest.approx(1 / 6)

    @pytest.mark.parametrize(
        ("place", "uri"),
        [
            ("ws/robot/meshes/t.stl", "package://robot/meshes/t.stl"),
            ("ws/share/other/meshes/t.stl", "package://other/meshes/t.stl"),
            ("ws/robot/urdf/meshes/t.stl", "meshes/t.stl"),
            ("ws/robot/meshes/t.stl", "../meshes/t.stl"),
            ("ws/robot/t.stl", "model://robot/t.stl"),
        ],
    )
    def test_places(self, tmp_path, place: str, uri: str) -> None:
        file = tmp_path / "ws" / "robot" / "urdf" / "r.urdf"
        for path, content in ((file, robot(mesh_link(uri)).encode()), (tmp_path / place, binary_stl())):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        scene = load_urdf(file)
        assert len(scene.bodies[0].shapes) == 1
        assert scene.unsupported == []

    def test_package_dirs_and_file_uris(self, tmp_path, monkeypatch) -> None:
        mesh = tmp_path / "far" / "pkg" / "a b.stl"
        mesh.parent.mkdir(parents=True)
        mesh.write_bytes(binary_stl())
        xml = robot(mesh_link("package://pkg/a b.stl"))
        assert len(load_urdf(xml, package_dirs=[tmp_path / "far"]).bodies[0].shapes) == 1
        assert len(load_urdf(xml, package_dirs=str(tmp_path / "far")).bodies[0].shapes) == 1
        assert len(load_urdf(robot(mesh_link(mesh.as_uri()))).bodies[0].shapes) == 1
        monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "far"))
        assert len(load_urdf(xml).bodies[0].shapes) == 1

    def test_missing_mesh(self) -> None:
        scene = load_urdf(robot(mesh_link("package://gone/x.stl")))
        assert scene.bodies[0].shapes == []
        assert any("package://gone/x.stl" in sentence for sentence in scene.unsupported)
        many = INERTIAL + "".join(
            f"<visual><geometry><mesh filename='{i}.stl'/></geometry></visual>" for i in range(20)
        )
        (sentence,) = load_urdf(robot(link("a", many))).unsupported
        assert "and 8 more" in sentence
        assert problems(robot(mesh_link("package://gone/x.stl", inertial="")))[0][0] == 2
        assert load_urdf(robot(mesh_link("gone.stl", "visual", inertial=""))).bodies[0].shapes == []
        assert load_urdf(robot(mesh_link("x" * 5000 + ".stl"))).bodies[0].shapes == []

    def test_other_format(self, tmp_path) -> None:
        (tmp_path / "x.dae").write_text("<COLLADA/>")
        scene = load_urdf(robot(mesh_link(str(tmp_path / "x.dae"))))
        assert any(".stl and .obj" in sentence for sentence in scene.unsupported)

    @pytest.mark.parametrize(
        ("name", "content", "said"),
        [
            ("a.stl", b"", "not an STL"),
            ("a.stl", binary_stl()[:-10], "cut off"),
            ("a.stl", b"x" * 200, "cut off"),
            ("a.stl", b"solid a\nvertex 0 0 0\nvertex 1 0 0\n", "triangles"),
            ("a.stl", b"solid a\nvertex 0 zero 0\n", "3 numbers"),
            ("a.stl", b"solid a\nendsolid", "no triangles"),
            ("a.obj", b"v 0 0 0\nv 1 0 0\nf 1 2 3\n", "2 vertices"),
            ("a.obj", b"v 0 0 0\nf 1 1\n", "3 corners"),
            ("a.obj", b"v 0 0 0\nf a b c\n", "number of a vertex"),
            ("a.obj", b"v 0 0 0\nf 0 1 1\n", "1 vertices"),
            ("a.obj", b"v 0 0\n", "3 numbers"),
            ("a.obj", b"v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3", "not finite"),
            ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 3 4", "flat"),
        ],
    )
    def test_broken_mesh(self, tmp_path, name: str, content: bytes, said: str) -> None:
        (tmp_path / name).write_bytes(content)
        ((line, message),) = problems(robot(mesh_link(str(tmp_path / name))))
        assert line == 2
        assert said in message

    @pytest.mark.parametrize(
        ("content", "count"),
        [
            (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3", 1),
            (b"\n".join(obj().splitlines()[:-1]), 3),
            (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 2 0 0\nf 1 2 4\nf 1 2 3", 1),
        ],
        ids=["flat", "open", "with a triangle that has no area"],
    )
    def test_visuals_of_any_form_are_kept(self, tmp_path, content: bytes, count: int) -> None:
        (tmp_path / "sheet.obj").write_bytes(content)
        scene = load_urdf(robot(mesh_link(str(tmp_path / "sheet.obj"), "visual")))
        (shape,) = scene.bodies[0].shapes
        assert isinstance(shape, TriangleMesh)
        assert shape.open
        assert len(shape.faces) == count
        assert not [sentence for sentence in scene.unsupported if "mesh" in sentence]

    def test_visuals_without_an_area_are_left_out(self, tmp_path) -> None:
        (tmp_path / "line.obj").write_text("v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3")
        scene = load_urdf(robot(mesh_link(str(tmp_path / "line.obj"), "visual")))
        assert scene.bodies[0].shapes == []
        assert any("without any area" in sentence for sentence in scene.unsupported)
