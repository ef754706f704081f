"""What the MJCF importer lists as lost, warns of and refuses."""

from __future__ import annotations

import builtins
import warnings

import pytest

import poise.io.mjcf as reader
from mjcf_models import limb, limb_of, model
from poise.io.mjcf import load_mjcf
from poise.model.errors import SceneError
from poise.model.shapes import Plane, Sphere, TriangleMesh


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch) -> None:
    """MuJoCo logs warnings to a file in the working directory."""
    monkeypatch.chdir(tmp_path)


class TestGaps:
    @pytest.mark.parametrize(
        ("xml", "said"),
        [
            (model(head="<option integrator='RK4' solver='CG'/>"), "integrator rk4, solver cg"),
            (model(head="<option density='1.2' viscosity='0.1' wind='1 0 0'/>"), "fluid (density 1.2"),
            (model(head="<option><flag warmstart='disable' energy='enable'/></option>"), "(warmstart)"),
            (model(head="<option><flag energy='enable'/></option>"), "(energy)"),
            (model(limb("<geom size='1' solref='0.1 1'/>")), "solref"),
            (model(limb("<geom size='1' gap='0.1' margin='0.2'/>")), "gap"),
            (model(limb("<geom size='1' fluidshape='ellipsoid'/>")), "fluidshape"),
            (model(limb(joint="<joint range='-1 1' solreflimit='0.1 1'/>")), "solreflimit"),
            (model(limb(joint="<joint frictionloss='0.4' solreffriction='0.1 1'/>")), "solreffriction"),
            (model(limb("<geom size='1'/><site name='tip'/>")), "1 site (tip)"),
            (model("<camera name='eye'/><light name='sun'/>"), "1 camera (eye)"),
            (model("<light name='sun'/>"), "1 light (sun)"),
            (model(limb(), sensor="<jointpos name='p' joint='j'/>"), "1 sensor (p)"),
            (model(limb(), tendon="<fixed name='t'><joint joint='j' coef='1'/></fixed>"), "1 tendon (t)"),
            (model(custom="<numeric name='n' data='1'/><text name='x' data='y'/>"), "1 custom text (x)"),
            (model(visual="<map force='1'/>"), "visual"),
        ],
        ids=lambda value: None if value.startswith("<") else value,
    )
    def test_is_listed(self, xml: str, said: str) -> None:
        assert any(said in sentence for sentence in load_mjcf(xml).unsupported)

    def test_what_meets_nothing_has_no_contact_gaps(self) -> None:
        ghost = "<geom size='1' contype='0' conaffinity='0' condim='1' solref='0.1 1' priority='2'/>"
        assert load_mjcf(model(limb(ghost))).unsupported == []

    @pytest.mark.parametrize("count", [30, 32])
    def test_more_filters_than_groups(self, count: int) -> None:
        geoms = "".join(f"<geom size='0.1' contype='{k + 1}' conaffinity='1'/>" for k in range(count))
        scene = load_mjcf(model(limb(geoms)))
        said = [text for text in scene.unsupported if "more than can be kept apart exactly" in text]
        assert len(said) == (count > 30)
        assert all(0 <= shape.group < 2**31 for shape in limb_of(scene).shapes)

    @pytest.mark.parametrize("missing", [0, 1])
    def test_visual_mesh_that_does_not_close(self, missing: int) -> None:
        """Its own faces are shown, whether they bound a volume or not; what collides is a hull."""
        faces = ["0 2 1", "0 1 3", "0 3 2", "1 2 3"][missing:]
        mesh = "<mesh name='m' inertia='shell' vertex='0 0 0 1 0 0 0 1 0 0 0 1' face='" + " ".join(faces) + "'/>"
        ghost = "<geom type='mesh' mesh='m' contype='0' conaffinity='0' mass='0'/>"
        scene = load_mjcf(model(limb("<geom size='0.1'/>" + ghost), head=f"<asset>{mesh}</asset>"))
        assert not [text for text in scene.unsupported if "hull" in text or "mesh" in text]
        shown = limb_of(scene).shapes[1]
        assert isinstance(shown, TriangleMesh)
        assert len(shown.faces) == 4 - missing
        assert shown.open == bool(missing)
        assert scene.compile().nv == 1

    def test_plane_on_a_mocap_body(self) -> None:
        """MuJoCo allows it; it is left out, and the rest of the model still compiles."""
        plane = "<body name='lift' mocap='true'><geom name='deck' type='plane' size='1 1 1'/><geom size='0.1'/></body>"
        scene = load_mjcf(model("<geom type='plane' size='0 0 1'/>" + plane + limb()))
        assert scene.unsupported == ["1 plane or height field (deck) on moving bodies left out: here they do not move."]
        assert [type(s) for body in scene.bodies for s in body.shapes] == [Plane, Sphere, Sphere]
        assert scene.compile().nv == 7

    def test_nothing_to_list(self) -> None:
        assert load_mjcf(model("<geom type='plane' size='0 0 1'/>" + limb())).unsupported == []

    def test_many_names_are_counted(self) -> None:
        sites = "".join(f"<site name='s{i}'/>" for i in range(20))
        (sentence,) = load_mjcf(model(limb("<geom size='1'/>" + sites))).unsupported
        assert "20 sites (s0, s1," in sentence
        assert "and 8 more" in sentence


class TestErrors:
    def test_line_of_a_bad_attribute(self) -> None:
        with pytest.raises(SceneError, match="size") as caught:
            load_mjcf("<mujoco>\n<worldbody>\n<geom size='wide'/>\n</worldbody></mujoco>")
        assert caught.value.line == 3

    def test_line_of_broken_xml(self, tmp_path) -> None:
        file = tmp_path / "broken.xml"
        file.write_text("<mujoco>\n<worldbody>\n<body></worldbody></mujoco>")
        with pytest.raises(SceneError) as caught:
            load_mjcf(file)
        assert caught.value.file == str(file)
        assert caught.value.line == 3
        assert f"{file}:3" in str(caught.value)

    def test_line_of_a_moving_body_without_mass(self) -> None:
        with pytest.raises(SceneError, match="mass") as caught:
            load_mjcf("<mujoco><worldbody>\n\n<body name='ghost'><joint/></body></worldbody></mujoco>")
        assert caught.value.line == 3

    @pytest.mark.parametrize(
        "xml",
        [
            "<mujoco><worldbody><body><joint name='a'/><joint name='a'/><geom size='1'/></body></worldbody></mujoco>",
            "<mujoco><worldbody><geom type='mesh' mesh='gone'/></worldbody></mujoco>",
            "<mujoco><worldbody><geom size='-1'/></worldbody></mujoco>",
            "<mujoco><worldbody><geom size='nan'/></worldbody></mujoco>",
            "<mujoco><asset><mesh file='gone.stl'/></asset></mujoco>",
            "<mujoco><include file='gone.xml'/></mujoco>",
            "<mujoco><wordbody/></mujoco>",
            "<something/>",
            "<",
        ],
    )
    def test_refused(self, xml: str) -> None:
        with pytest.raises(SceneError):
            load_mjcf(xml)

    def test_urdf_is_not_mjcf(self) -> None:
        with pytest.raises(SceneError, match="URDF"):
            load_mjcf("<robot name='r'><link name='base'/></robot>")

    def test_no_such_file(self, tmp_path) -> None:
        with pytest.raises(SceneError, match="does not exist"):
            load_mjcf(tmp_path / "gone.xml")
        with pytest.raises(SceneError, match="directory"):
            load_mjcf(tmp_path)

    def test_without_mujoco(self, monkeypatch) -> None:
        real = builtins.__import__

        def without(name, *args, **options):
            if name == "mujoco":
                raise ImportError(name)
            return real(name, *args, **options)

        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(ImportError, match='pip install "mujoco'):
            load_mjcf(model())

    def test_warnings_of_mujoco_are_kept(self, monkeypatch, tmp_path) -> None:
        scene = load_mjcf(model(limb(), head="<compiler settotalmass='3'/>"))
        assert limb_of(scene).inertia.mass == pytest.approx(3.0)
        assert all("MuJoCo warns" in sentence for sentence in scene.unsupported)  # not every version warns
        real = reader._compile

        def warning(*args):
            warnings.warn("this is\n  odd", UserWarning, stacklevel=1)
            return real(*args)

        monkeypatch.setattr(reader, "_compile", warning)
        assert load_mjcf(model(limb())).unsupported == ["MuJoCo warns: this is odd."]
        assert list(tmp_path.iterdir()) == [], "nothing is left in the working directory"

    @pytest.mark.parametrize("source", [3, None, b"<mujoco/>"])
    def test_what_is_no_source(self, source) -> None:
        with pytest.raises(SceneError, match="load_mjcf takes the path of a file or a string of MJCF, found"):
            load_mjcf(source)

    def test_assets_that_are_none(self) -> None:
        with pytest.raises(SceneError, match="assets: must be contents in bytes by name, found 'text' for 'a'"):
            load_mjcf(model(), assets={"a": "text"})

    def test_includes_in_comments_do_not_count(self) -> None:
        xml = "<mujoco>\n<!-- <include file='gone.xml'/> -->\n<worldbody>\n<geom size='1'/></worldbody></mujoco>"
        assert load_mjcf(xml).bodies[0].shapes[0].line == 4

    def test_files_from_memory(self) -> None:
        xml = "<mujoco><include file='part.xml'/></mujoco>"
        part = b"<mujocoinclude><worldbody><geom name='g' size='1'/></worldbody></mujocoinclude>"
        (body,) = load_mjcf(xml, assets={"part.xml": part}).bodies
        assert isinstance(body.shapes[0], Sphere)
        assert body.shapes[0].line is None, "it would be a line of another file"
