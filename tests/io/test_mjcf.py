"""What the MJCF importer keeps, changes and lists."""

from __future__ import annotations

import numpy as np
import pytest

from mjcf_models import GEOM, limb, limb_of, model, shape
from poise.io.mjcf import load_mjcf
from poise.model.shapes import Box, Capsule, ConvexMesh, Cylinder, Ellipsoid, Plane
from scene_kinematics import rest_q, widths


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch) -> None:
    """MuJoCo logs warnings to a file in the working directory."""
    monkeypatch.chdir(tmp_path)


class TestShapes:
    def test_sizes_are_full_lengths(self) -> None:
        assert shape("<geom type='sphere' size='0.1'/>").radius == pytest.approx(0.1)
        box = shape("<geom type='box' size='0.1 0.2 0.3'/>")
        assert isinstance(box, Box)
        assert box.size == pytest.approx((0.2, 0.4, 0.6))
        ellipsoid = shape("<geom type='ellipsoid' size='0.1 0.2 0.3'/>")
        assert isinstance(ellipsoid, Ellipsoid)
        assert ellipsoid.size == pytest.approx((0.2, 0.4, 0.6))
        cylinder = shape("<geom type='cylinder' size='0.1 0.2'/>")
        assert isinstance(cylinder, Cylinder)
        assert (cylinder.radius, cylinder.length) == pytest.approx((0.1, 0.4))

    def test_capsule_from_end_to_end(self) -> None:
        capsule = shape("<geom type='capsule' fromto='0 0 0 0.6 0 0' size='0.05'/>")
        assert isinstance(capsule, Capsule)
        assert (capsule.radius, capsule.length) == pytest.approx((0.05, 0.6))
        assert capsule.position == pytest.approx((0.3, 0, 0))

    def test_plane_of_the_world(self) -> None:
        (body,) = load_mjcf(model("<geom name='floor' type='plane' size='0 0 1'/>")).bodies
        assert (body.name, body.motion, body.joints, body.inertia.mass) == ("world_geoms", "fixed", [], 0.0)
        assert isinstance(body.shapes[0], Plane)
        assert body.shapes[0].extent is None
        (body,) = load_mjcf(model("<geom type='plane' size='2 3 1'/>")).bodies
        assert body.shapes[0].extent == (4.0, 6.0)

    def test_name_of_world_body_gives_way(self) -> None:
        xml = model("<geom size='1'/><body name='world_geoms'><geom size='1'/></body>")
        assert [body.name for body in load_mjcf(xml).bodies] == ["world_geoms_", "world_geoms"]

    def test_mesh_is_its_hull(self) -> None:
        # a unit cube with one more vertex inside it
        corners = " ".join(f"{x} {y} {z}" for x in (0, 1) for y in (0, 1) for z in (0, 1))
        xml = model(
            limb("<geom type='mesh' mesh='cube'/>"),
            head=f"<asset><mesh name='cube' vertex='{corners} 0.5 0.4 0.3'/></asset>",
        )
        body = limb_of(load_mjcf(xml))
        (mesh,) = body.shapes
        assert isinstance(mesh, ConvexMesh)
        assert mesh.vertices.shape == (8, 3)
        assert np.ptp(mesh.vertices, axis=0) == pytest.approx((1, 1, 1))
        triangles = mesh.vertices[mesh.faces]
        normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
        outward = np.einsum("ij,ij->i", normals, triangles.mean(axis=1) - mesh.vertices.mean(axis=0))
        assert len(mesh.faces) == 12
        assert (outward > 0).all()
        assert body.inertia.mass == pytest.approx(1000.0)

    def test_material_and_colour(self) -> None:
        xml = model(
            limb("<geom size='0.1' friction='0.3 0.02 0.001' condim='4' material='m' margin='0.01'/>"),
            head="<asset><material name='m' rgba='0.1 0.2 0.3 0.5'/></asset>",
        )
        (ball,) = limb_of(load_mjcf(xml)).shapes
        assert ball.material.friction == 0.3
        assert ball.material.torsional_friction == 0.02
        assert (ball.material.rolling_friction, ball.material.condim) == (0.001, 4)
        assert ball.color == pytest.approx((0.1, 0.2, 0.3, 0.5))
        assert ball.margin == 0.01
        smooth, rolling = (shape(f"<geom size='0.1' friction='0.3 0.02 0.001' condim='{n}'/>").material for n in (3, 6))
        assert (smooth.friction, smooth.torsional_friction, smooth.rolling_friction) == (0.3, 0.02, 0.001)
        assert (smooth.condim, rolling.condim) == (3, 6)
        assert shape("<geom size='0.1' rgba='1 0 0 1'/>").color == (1.0, 0.0, 0.0, 1.0)

    def test_mass_never_comes_from_shapes(self) -> None:
        body = limb_of(load_mjcf(model(limb("<inertial pos='0 0 0' mass='3' diaginertia='1 1 1'/><geom size='1'/>"))))
        assert body.inertia.mass == 3.0
        assert body.shapes[0].density == 0.0
        assert body.shapes[0].mass is None

    def test_lines(self) -> None:
        xml = "<mujoco>\n<worldbody>\n<body name='limb'>\n<joint/>\n<geom size='0.1'/>\n</body></worldbody></mujoco>"
        body = limb_of(load_mjcf(xml))
        assert (body.line, body.joints[0].line, body.shapes[0].line) == (3, 4, 5)


class TestCollisionGroups:
    """Shapes meet as in MuJoCo: the contype of either in the conaffinity of the other."""

    @staticmethod
    def meets(first, second) -> bool:
        assert bool(first.group & second.mask) == bool(second.group & first.mask), "both ways, or neither"
        return bool(first.group & second.mask)

    def test_every_pair(self) -> None:
        filters = [(1, 1), (1, 0), (0, 1), (0, 0), (2, 1), (6, 4), (8, 8), (0, 6)]
        geoms = "".join(f"<geom size='0.1' contype='{a}' conaffinity='{b}'/>" for a, b in filters)
        shapes = limb_of(load_mjcf(model(limb(geoms + "<geom size='1'/>")))).shapes
        for (a, b), first in zip(filters, shapes, strict=False):
            for (c, d), second in zip(filters, shapes, strict=False):
                assert self.meets(first, second) == bool(a & d or c & b)

    def test_default_is_default(self) -> None:
        ball = shape("<geom size='0.1'/>")
        assert (ball.group, ball.mask) == (1, 1)

    def test_only_looked_at(self) -> None:
        ball = shape("<geom size='0.1' contype='0' conaffinity='0'/>")
        assert (ball.group, ball.mask) == (0, 0)

    def test_contacts_switched_off(self) -> None:
        scene = load_mjcf(model(limb(), head="<option><flag contact='disable'/></option>"))
        assert (limb_of(scene).shapes[0].group, limb_of(scene).shapes[0].mask) == (0, 0)


class TestJoints:
    def test_several_in_order(self) -> None:
        joints = (
            "<joint name='a' axis='0 0 2' pos='1 0 0'/>"
            "<joint name='b' type='slide' axis='1 0 0'/><joint name='c' type='ball'/>"
        )
        body = limb_of(load_mjcf(model(limb(joint=joints))))
        assert [(joint.name, joint.kind) for joint in body.joints] == [("a", "hinge"), ("b", "slider"), ("c", "ball")]
        assert body.joints[0].axis == (0.0, 0.0, 1.0)

    def test_everything_of_a_hinge(self) -> None:
        joint = (
            "<joint name='j' pos='0.1 0 0' range='-30 60' stiffness='2' springref='10' ref='5' damping='0.3'"
            " armature='0.01' frictionloss='0.4'/>"
        )
        (hinge,) = limb_of(load_mjcf(model(limb(joint=joint)))).joints
        assert hinge.anchor == (0.1, 0.0, 0.0)
        assert hinge.limits == pytest.approx(np.radians((-30, 60)))
        assert (hinge.stiffness, hinge.damping, hinge.armature, hinge.friction) == (2.0, 0.3, 0.01, 0.4)
        assert hinge.rest == pytest.approx(np.radians(5))
        assert hinge.spring == pytest.approx(np.radians(10))

    @pytest.mark.parametrize("kind", ["hinge", "slide"])
    def test_spring_without_springref_is_relaxed_at_nought(self, kind: str) -> None:
        """MuJoCo's springref is 0 where a file has none, whatever ref is; Poise's default is the rest pose."""
        xml = model(limb(joint=f"<joint type='{kind}' stiffness='2' ref='0.3'/>"), head="<compiler angle='radian'/>")
        scene = load_mjcf(xml)
        (joint,) = limb_of(scene).joints
        assert (joint.rest, joint.spring) == (pytest.approx(0.3), 0.0)
        compiled = scene.compile()
        assert (compiled.q_rest[0], compiled.q_spring[0]) == (pytest.approx(0.3), 0.0)

    def test_spring_of_a_ball_is_relaxed_at_rest(self) -> None:
        scene = load_mjcf(model(f"<body name='limb' quat='0 1 0 0'><joint type='ball' stiffness='2'/>{GEOM}</body>"))
        assert scene.compile().q_spring.tolist() == [1, 0, 0, 0]

    def test_range_without_limit(self) -> None:
        (hinge,) = limb_of(load_mjcf(model(limb(joint="<joint range='-1 1' limited='false'/>")))).joints
        assert hinge.limits is None

    def test_ball_limit_is_said(self) -> None:
        scene = load_mjcf(model(limb(joint="<joint name='j' type='ball' range='0 50'/>")))
        (ball,) = limb_of(scene).joints
        assert ball.cone == pytest.approx(np.radians(50))
        assert ball.twist == pytest.approx((-np.radians(50), np.radians(50)))
        assert any("1 ball joint (j)" in text and "cone" in text for text in scene.unsupported)

    def test_names_that_are_missing(self) -> None:
        xml = model(
            "<body name='torso'><freejoint/><geom size='1'/>"
            "<body><joint/><joint axis='1 0 0'/><geom size='1'/></body></body>"
            "<body name='x'><joint/><geom size='1'/></body><body name='y'><joint name='x'/><geom size='1'/></body>"
        )
        scene = load_mjcf(xml)
        assert [body.name for body in scene.bodies] == ["torso", "body_2", "x", "y"]
        names = [joint.name for body in scene.bodies for joint in body.joints]
        assert names == ["torso", "joint_1", "joint_2", "joint_3", "x"]

    @pytest.mark.parametrize(
        ("flag", "field", "value"),
        [
            ("spring", "stiffness", 0.0),
            ("damper", "damping", 0.0),
            ("limit", "limits", None),
            ("frictionloss", "friction", 0),
        ],
    )
    def test_switched_off(self, flag: str, field: str, value: object) -> None:
        joint = "<joint range='-10 10' stiffness='1' damping='1' frictionloss='1'/>"
        scene = load_mjcf(model(limb(joint=joint), head=f"<option><flag {flag}='disable'/></option>"))
        assert getattr(limb_of(scene).joints[0], field) == value

    def test_gravity_switched_off(self) -> None:
        assert load_mjcf(model(head="<option><flag gravity='disable'/></option>")).gravity == (0, 0, 0)


class TestMocap:
    XML = model(
        "<body name='hand' mocap='true' pos='1 2 3'><geom size='0.1'/></body>" + limb(joint="<freejoint/>"),
        keyframe="<key name='k' qpos='0 0 5 1 0 0 0' mpos='7 8 9' mquat='0 1 0 0' time='2'/>",
    )

    def test_comes_last_and_keeps_its_place(self) -> None:
        scene = load_mjcf(self.XML)
        assert [(body.name, body.motion) for body in scene.bodies] == [("limb", "dynamic"), ("hand", "kinematic")]
        assert widths(scene) == (14, 12)
        assert scene.compile().nq == 14
        assert rest_q(scene)[7:10] == pytest.approx((1, 2, 3))
        assert scene.bodies[1].path is None
        assert scene.bodies[1].position == (1.0, 2.0, 3.0)

    def test_keyframe_holds_its_pose(self) -> None:
        (key,) = load_mjcf(self.XML).keyframes
        assert (key.name, key.time) == ("k", 2.0)
        assert key.q == (0, 0, 5, 1, 0, 0, 0, 7, 8, 9, 0, 1, 0, 0)
        assert len(key.v) == 12

    def test_what_it_carries_follows(self) -> None:
        xml = model(
            "<body name='hand' mocap='true'><body name='finger'><joint name='f'/><geom size='0.1'/></body></body>"
            + limb(),
            keyframe="<key qpos='1 2'/>",
        )
        scene = load_mjcf(xml)
        assert [body.name for body in scene.bodies] == ["limb", "hand", "finger"]
        assert scene.keyframes[0].q == (2, 0, 0, 0, 1, 0, 0, 0, 1)
        assert scene.compile().joint_names[-1] == "f"
        assert any("finger" in text and "last" in text for text in scene.unsupported)


class TestDrives:
    def test_kinds(self) -> None:
        actuators = (
            "<motor name='m' joint='j' gear='20' ctrlrange='-1 1' forcerange='-5 5'/>"
            "<position joint='j' kp='30' kv='2'/><velocity joint='j' kv='4'/>"
            "<intvelocity joint='j' kp='3' actrange='-1 1'/>"
            "<damper joint='j' kv='1' ctrlrange='0 1'/><muscle joint='j' lengthrange='0 1'/>"
            "<adhesion body='limb' ctrlrange='0 1'/>"
            "<general joint='j' gainprm='3' biastype='affine' biasprm='1 2 3'/>"
        )
        scene = load_mjcf(model(limb(), actuator=actuators))
        kinds = [actuator.kind for actuator in scene.actuators]
        assert kinds == ["motor", "position", "velocity", "intvelocity", "damper", "muscle", "adhesion", "general"]
        motor, position, velocity, *_, adhesion, general = scene.actuators
        assert (motor.target, motor.gear[0], motor.control_range, motor.force_range) == ("j", 20.0, (-1, 1), (-5, 5))
        assert (position.options["kp"], position.options["kv"], position.control_range) == (30.0, 2.0, None)
        assert velocity.options["kv"] == 4.0
        assert (adhesion.target, position.name) == ("limb", "actuator_1")
        assert general.options["bias_parameters"][:3] == (1.0, 2.0, 3.0)
        assert any("1 muscle actuator (actuator_5)" in text for text in scene.unsupported)
        assert any("1 adhesion actuator" in text for text in scene.unsupported)
        assert any("activation dynamics" in text and "actuator_3" in text for text in scene.unsupported)

    def test_tendon_and_site(self) -> None:
        scene = load_mjcf(
            model(
                limb("<geom size='1'/><site name='s' pos='0 0 0.1'/>"),
                tendon="<fixed name='t'><joint joint='j' coef='2'/></fixed>",
                actuator="<motor tendon='t'/><motor site='s' gear='0 0 1 0 0 0'/>",
            )
        )
        by_tendon, by_site = scene.actuators
        assert (by_tendon.target, by_tendon.options["joints"]) == ("t", {"j": 2.0})
        assert (by_site.target, by_site.options["position"]) == ("limb", (0.0, 0.0, 0.1))
        assert by_site.gear == (0, 0, 1, 0, 0, 0)

    def test_slider_crank(self) -> None:
        sites = "<geom size='1'/><site name='crank' pos='0 0 0.1'/><site name='slider' pos='0 0 0.2'/>"
        actuator = "<motor cranksite='crank' slidersite='slider' cranklength='0.7'/>"
        (crank,) = load_mjcf(model(limb(sites), actuator=actuator)).actuators
        assert (crank.target, crank.options["transmission"]) == ("limb", "slidercrank")
        assert crank.options["crank_length"] == 0.7
        assert crank.options["site"] == "crank"
        assert crank.options["reference"]["site"] == "slider"

    def test_weld(self) -> None:
        other = "<body name='other' pos='1 0 0'><joint name='k'/><geom size='0.1'/></body>"
        equality = "<weld body1='limb' body2='other' anchor='0 0 0.2' relpose='1 2 3 0.6 0.8 0 0' torquescale='0.5'/>"
        (weld,) = load_mjcf(model(limb() + other, equality=equality)).equalities
        assert weld.options["second_anchor"] == (0, 0, 0.2)
        assert weld.options["position"] == (1, 2, 3)
        assert weld.options["quat_wxyz"] == (0.6, 0.8, 0, 0)
        assert weld.options["torque_scale"] == 0.5

    def test_equalities(self) -> None:
        other = "<body name='other' pos='1 0 0'><joint name='k'/><geom size='0.1'/></body>"
        equality = (
            "<connect name='c' body1='limb' body2='other' anchor='0 0 0.5'/><weld body1='limb'/>"
            "<joint joint1='j' joint2='k' polycoef='0 2 0 0 0' active='false'/>"
        )
        connect, weld, joint = load_mjcf(model(limb() + other, equality=equality)).equalities
        assert (connect.name, connect.kind, connect.first, connect.second) == ("c", "connect", "limb", "other")
        assert connect.options["first_anchor"] == (0.0, 0.0, 0.5)
        assert connect.options["second_anchor"] == pytest.approx((-1.0, 0.0, 1.5))
        assert (weld.name, weld.second, weld.active) == ("equality_1", None, True)
        assert weld.options["torque_scale"] == 1.0
        assert (joint.first, joint.second, joint.active) == ("j", "k", False)
        assert joint.options["coefficients"] == (0, 2, 0, 0, 0)

    def test_excluded_pairs(self) -> None:
        other = "<body name='other' pos='1 0 0'><joint name='k'/><geom size='0.1'/></body>"
        exclude = "<exclude body1='other' body2='limb'/><exclude body1='world' body2='limb'/>"
        assert load_mjcf(model(limb() + other, contact=exclude)).excluded_pairs == [("limb", "other")]
        pairs = load_mjcf(model("<geom size='1'/>" + limb() + other, contact=exclude)).excluded_pairs
        assert set(pairs) == {("limb", "other"), ("world_geoms", "limb")}
