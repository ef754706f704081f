"""Links of a URDF file whose inertia no body has: repaired, accepted or refused, and said in one warning a file."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import poise
from poise import dynamics
from poise.io import LossWarning
from poise.io.mjcf import load_mjcf
from poise.io.urdf import load_urdf
from poise.model.errors import SceneError
from poise.model.massprops import inertia_matrix, nearest_physical_inertia
from urdf_models import INERTIAL, joint, link, problems, robot, urdf_files

ROD = (0.0007, 0.0007, 0.0066, 1e-5, -2e-5, 3e-5)
"""Moments and products about as those of Romeo's elbow: the third moment is far more than the others together."""


def inertial(xx: float, yy: float, zz: float, xy: float = 0, xz: float = 0, yz: float = 0, mass: float = 0.5) -> str:
    return (
        f"<inertial><origin xyz='0.1 0.2 0.3' rpy='0.4 0.5 0.6'/><mass value='{mass}'/>\n"
        f"<inertia ixx='{xx}' iyy='{yy}' izz='{zz}' ixy='{xy}' ixz='{xz}' iyz='{yz}'/></inertial>"
    )


def arm(*numbers: float, mass: float = 0.5) -> str:
    return robot(link("base"), link("elbow", inertial(*numbers, mass=mass)), joint("j", "base", "elbow"))


def load_with_warnings(source, **options) -> tuple[poise.Scene, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scene = load_urdf(source, **options)
    assert all(one.category is LossWarning for one in caught)
    assert all(one.filename == __file__ for one in caught), "the warning points at the caller"
    return scene, [str(one.message) for one in caught]


class TestRepair:
    def test_nearest_with_mass_and_centre_kept(self) -> None:
        strange = load_urdf(arm(*ROD), inertia="accept").body("elbow").inertia
        scene, said = load_with_warnings(arm(*ROD))
        repaired = scene.body("elbow").inertia
        assert (repaired.mass, repaired.com, repaired.quat_wxyz) == (strange.mass, strange.com, strange.quat_wxyz)
        given, found = inertia_matrix(strange), inertia_matrix(repaired)
        assert np.array_equal(found, nearest_physical_inertia(given))
        scene.compile()
        # one warning, with the link and both figures
        change = float(np.linalg.norm(found - given))
        assert len(said) == 1
        assert f"elbow by {change:.3g} kg·m² ({100 * change / np.linalg.norm(given):.3g} %)" in said[0]
        assert any("elbow by" in sentence for sentence in scene.unsupported)

    def test_every_link_is_listed(self) -> None:
        names = [f"link{i}" for i in range(30)]
        links = [link(name, inertial(*ROD)) for name in names]
        scene, said = load_with_warnings(robot(link("base"), *links, *(joint(n, "base", n) for n in names)))
        assert len(said) == 1
        assert all(f"{name} by " in said[0] for name in names)
        scene.compile()

    @pytest.mark.parametrize(
        "numbers",
        [
            (1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6),
            (-5.42101e-20, -5.42101e-20, 1e-19),
            (0.0, 0.0, 0.0, 1.35525e-20, 0.0, 0.0),
            (-1.0, 2.0, 3.0),
            (-1.0, -1.0, -1.0),
            (1.0, 2.0, 300.0),
            (1.0, 1.0, 1.0, 5.0, 0.0, 0.0),
        ],
    )
    def test_whatever_the_numbers_are(self, numbers: tuple[float, ...]) -> None:
        scene, said = load_with_warnings(arm(*numbers))
        scene.compile()
        assert len(said) == 1
        with pytest.raises(SceneError):
            load_urdf(arm(*numbers), inertia="strict")

    @pytest.mark.parametrize("numbers", [(1.0, 1.0, 1.0), (1.0, 1.0, 2.0), (0.0, 1.0, 1.0), (0.0, 0.0, 0.0)])
    @pytest.mark.parametrize("choice", ["repair", "accept", "strict"])
    def test_physical_inertias_stay_without_a_word(self, numbers: tuple[float, ...], choice: str) -> None:
        scene, said = load_with_warnings(arm(*numbers), inertia=choice)
        assert said == []
        assert scene.body("elbow").inertia.moments == numbers
        assert not scene.body("elbow").inertia.allow_unphysical

    def test_rounding_of_three_digits_stays(self) -> None:
        scene, said = load_with_warnings(arm(0.101, 0.101, 0.203))
        assert (scene.body("elbow").inertia.moments, said) == ((0.101, 0.101, 0.203), [])

    def test_moments_without_mass(self) -> None:
        scene, said = load_with_warnings(robot(link("a", inertial(1, 1, 1, mass=0))))
        assert scene.body("a").inertia.moments == (0.0, 0.0, 0.0)
        assert "a by 1.73 kg·m² (100 %)" in said[0]


class TestAccept:
    def test_numbers_stay(self) -> None:
        scene, said = load_with_warnings(arm(*ROD), inertia="accept")
        found = scene.body("elbow").inertia
        assert (*found.moments, *found.products) == ROD
        assert len(said) == 1
        assert "kept as they are" in said[0]
        assert "elbow" in said[0]
        model = scene.compile()
        # about x through the joint: I of the link turned by its axes, and the mass at its distance
        R = np.array(poise.motion.rotations.quat_to_matrix(np.array(found.quat_wxyz)))
        turned = R @ inertia_matrix(found) @ R.T
        assert dynamics.mass_matrix(model, [0.3])[0, 0] == pytest.approx(
            turned[0, 0] + 0.5 * (0.2**2 + 0.3**2), rel=1e-14
        )

    def test_moments_without_mass_move(self) -> None:
        model = load_urdf(arm(0.2, 0.3, 0.4, mass=0), inertia="accept").compile()
        scene = load_urdf(arm(0.2, 0.3, 0.4, mass=1e-12))
        assert dynamics.mass_matrix(model, [0.3]) == pytest.approx(
            dynamics.mass_matrix(scene.compile(), [0.3]), rel=1e-9
        )

    def test_refused_where_the_mass_matrix_is_indefinite(self) -> None:
        with pytest.raises(SceneError, match=r'"elbow".*not positive definite') as caught:
            load_urdf(arm(-2.0, 1.0, 1.0), inertia="accept").compile()
        assert caught.value.problems[0].line == 3

    def test_refused_where_it_is_indefinite_at_some_pose_only(self) -> None:
        """The moment about the first axis is 1 − 5 sin² of the second angle: positive at rest."""
        thin = "<inertial><mass value='1'/><inertia ixx='1' iyy='-4' izz='1'/></inertial>"
        second = joint("k", "b", "c", content="<axis xyz='0 0 1'/>")
        xml = robot(link("a"), link("b", ""), link("c", thin), joint("j", "a", "b"), second)
        scene = load_urdf(xml, inertia="accept")
        with pytest.raises(SceneError, match="not positive definite"):
            scene.compile()

    def test_saved_and_read_again(self, tmp_path) -> None:
        scene = load_urdf(arm(*ROD), inertia="accept")
        scene.save(tmp_path / "arm.yaml")
        again = poise.load(tmp_path / "arm.yaml")
        assert again.body("elbow").inertia == scene.body("elbow").inertia
        assert np.array_equal(again.compile().link_inertia, scene.compile().link_inertia)

    def test_written_for_mujoco_as_the_nearest_physical_one(self, tmp_path) -> None:
        scene = load_urdf(arm(*ROD), inertia="accept")
        with pytest.warns(LossWarning, match="The inertia of .elbow. is changed by .* kg·m²"):
            scene.save(tmp_path / "arm.xml")
        again, repaired = poise.load(tmp_path / "arm.xml").compile(), load_urdf(arm(*ROD)).compile()
        assert again.link_inertia == pytest.approx(repaired.link_inertia, rel=1e-9, abs=1e-15)

    @pytest.mark.parametrize("numbers", [(-1e-3, 0.05, 0.05), (0.0, 0.0, 0.02)])
    def test_separate_bodies_need_inertias_of_their_own(self, numbers: tuple[float, ...]) -> None:
        scene = load_urdf(arm(*numbers), inertia="accept")
        scene.build(poise.Reduced()).run(0.01)
        with pytest.raises(ValueError, match=r"body .elbow. has principal moments .* that no body has"):
            scene.build(poise.Maximal())
        load_urdf(arm(*numbers)).build(poise.Maximal()).run(0.01)


@pytest.mark.parametrize("numbers", [(0.0, 0.02, 0.02), (0.01, 0.01, 0.02), (0.101, 0.101, 0.203)])
def test_moments_on_the_border_are_written_for_mujoco(tmp_path, numbers: tuple[float, float, float]) -> None:
    model = load_urdf(arm(*numbers)).compile()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_urdf(arm(*numbers)).save(tmp_path / "arm.xml")
    again = poise.load(tmp_path / "arm.xml").compile()
    assert again.link_inertia == pytest.approx(model.link_inertia, rel=0.01, abs=2e-3 if numbers[0] == 0.101 else 1e-13)
    # only what is strictly physical is kept without a word
    assert len(caught) == (numbers != (0.01, 0.01, 0.02))


class TestStrict:
    def test_refused_with_the_line_of_the_inertia(self) -> None:
        ((line, message),) = problems(arm(*ROD), inertia="strict")
        assert line == 4
        assert 'link "elbow"' in message
        assert "the largest must not exceed the sum of the others" in message

    def test_all_at_once(self) -> None:
        xml = robot(link("a", inertial(-1, 1, 1)), link("b", inertial(*ROD)), joint("j", "a", "b"))
        assert [line for line, _ in problems(xml, inertia="strict")] == [3, 5]

    def test_moments_without_mass(self) -> None:
        ((_, message),) = problems(arm(1, 1, 1, mass=0), inertia="strict")
        assert "must have a mass" in message


def test_other_choices_are_refused() -> None:
    with pytest.raises(SceneError, match='"repair", "accept" or "strict", found \'ignore\''):
        load_urdf(arm(*ROD), inertia="ignore")


def test_load_takes_the_option(tmp_path) -> None:
    file = tmp_path / "arm.urdf"
    file.write_text(arm(*ROD))
    with pytest.warns(LossWarning, match=r"arm\.urdf.*\n.*elbow by"):
        poise.load(file)
    with pytest.raises(SceneError, match=r"arm\.urdf:4: link .elbow."):
        poise.load(file, inertia="strict")


def test_scene_files_pass_the_option_on(tmp_path) -> None:
    (tmp_path / "arm.urdf").write_text(arm(*ROD))
    (tmp_path / "scene.yaml").write_text("characters:\n  - {name: it, file: arm.urdf, options: {inertia: accept}}\n")
    with pytest.warns(LossWarning, match="kept as they are") as caught:
        scene = poise.load(tmp_path / "scene.yaml")
    assert [one.filename for one in caught] == [__file__]
    assert scene.body("it/elbow").inertia.moments == ROD[:3]
    scene.compile()


@pytest.mark.parametrize("root", ["fixed", "free"])
@pytest.mark.parametrize("choice", ["repair", "accept"])
@pytest.mark.parametrize(
    "source", [arm(*ROD), *urdf_files()], ids=lambda it: it.stem if isinstance(it, Path) else "own"
)
def test_files_of_others_load(source: str | Path, choice: str, root: str) -> None:
    scene, said = load_with_warnings(source, inertia=choice, root=root)
    assert len(said) == 1
    model = scene.compile()
    assert np.linalg.eigvalsh(dynamics.mass_matrix(model, model.q_rest)).min() > 0.0


ZERO = (
    "<box size='0 0 0'/>",
    "<box size='1 0 1'/>",
    "<sphere radius='0'/>",
    "<cylinder radius='0' length='1'/>",
    "<cylinder radius='1' length='0'/>",
    "<mesh filename='gone.stl' scale='1 0 1'/>",
)


class TestVisualsWithoutSize:
    @pytest.mark.parametrize("solid", ZERO)
    def test_left_out_and_listed(self, solid: str) -> None:
        xml = robot(link("a", f"{INERTIAL}<visual><geometry>{solid}</geometry></visual>"))
        scene, said = load_with_warnings(xml)
        assert scene.bodies[0].shapes == []
        assert len(said) == 1
        assert "visuals of zero size left out" in said[0]
        assert 'in link "a"' in said[0]

    def test_what_collides_is_still_seen(self) -> None:
        visual = "<visual><geometry><box size='0 0 0'/></geometry></visual>"
        collision = "<collision><geometry><box size='1 1 1'/></geometry></collision>"
        scene, _ = load_with_warnings(robot(link("a", INERTIAL + visual + collision)))
        assert [shape.color[3] for shape in scene.bodies[0].shapes] == [1.0]

    @pytest.mark.parametrize("solid", ZERO)
    def test_collisions_are_refused(self, solid: str) -> None:
        ((line, _),) = problems(robot(link("a", f"{INERTIAL}<collision><geometry>{solid}</geometry></collision>")))
        assert line == 2

    def test_negative_sizes_are_refused(self) -> None:
        xml = robot(link("a", f"{INERTIAL}<visual><geometry><box size='1 -1 0'/></geometry></visual>"))
        assert "must be positive" in problems(xml)[0][1]


MJCF = (
    "<mujoco><compiler balanceinertia='{balance}'/><worldbody><body name='a'><joint/>"
    "<inertial pos='0 0 0' mass='1' diaginertia='1 2 6'/></body></worldbody></mujoco>"
)


@pytest.mark.filterwarnings("error")
def test_mjcf_has_a_repair_of_its_own() -> None:
    """MuJoCo refuses moments that no body has, or takes their mean where the file asks for it."""
    with pytest.raises(SceneError, match="balanceinertia"):
        load_mjcf(MJCF.format(balance="false"))
    assert load_mjcf(MJCF.format(balance="true")).body("a").inertia.moments == (3.0, 3.0, 3.0)


def test_mjcf_warns_of_what_it_does_not_take_over(tmp_path) -> None:
    (tmp_path / "arm.xml").write_text(MJCF.format(balance="true").replace("<joint/>", "<joint/><site name='tip'/>"))
    with pytest.warns(LossWarning, match=r"arm\.xml is not taken over as it is .*\n.*1 site \(tip\)") as caught:
        poise.load(tmp_path / "arm.xml")
    assert [one.filename for one in caught] == [__file__]
