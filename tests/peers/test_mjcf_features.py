"""Features of MJCF one by one, in tiny models: the same motion as in MuJoCo, or a warning that names the feature."""

from __future__ import annotations

import struct
import warnings
import zlib
from dataclasses import dataclass

import mujoco
import numpy as np
import pytest

from mjcf_models import GEOM, limb, model
from poise.io.losses import LossWarning
from poise.io.mjcf import load_mjcf
from poise.model.errors import SceneError

_MUJOCO = tuple(int(part) for part in mujoco.__version__.split(".")[:2])
FINE = 1e-4
"""Step of the reference; s."""
SPAN = 0.3
"""s."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch) -> None:
    """MuJoCo logs warnings to a file in the working directory."""
    monkeypatch.chdir(tmp_path)


def arm(actuator: str = "", *, bodies: str = "", joint: str = "", head: str = "", **sections: str) -> str:
    """Two links on hinges, in gravity; `bodies` are attributes of both bodies, `joint` those of the first joint."""
    links = (
        f"<body name='upper' pos='0 0 2' {bodies}><joint name='a' axis='0 1 0' damping='0.2' {joint}/>"
        "<geom type='capsule' fromto='0 0 0 0.4 0 0.1' size='0.04'/>"
        f"<body name='lower' pos='0.4 0 0.1' {bodies}><joint name='b' axis='0 1 0' damping='0.2'/>"
        "<geom type='capsule' fromto='0 0 0 0.3 0 0' size='0.03'/></body></body>"
    )
    return model(links, head=head, actuator=actuator, **sections)


def general(gain: str = "3", bias: str = "0 0 0", kind: str = "fixed") -> str:
    return (
        f"<general joint='a' gaintype='{kind}' gainprm='{gain}' biastype='affine' biasprm='{bias}'"
        " ctrlrange='-3 3' ctrllimited='true'/>"
    )


SERVO = "<position joint='a' kp='60' kv='3'/>"
RANGE = "actuatorfrcrange='-6 7'"


@dataclass
class Smooth:
    """A model without contacts, the same without the feature, and controls."""

    xml: str
    without: str
    ctrl: tuple[float, ...] = ()


FREE = "<body name='box' pos='0 0 2' euler='10 20 30'><freejoint name='f'/><geom type='box' size='.1 .2 .3'/></body>"
BALL = (
    "<body name='bob' pos='0 0 2'><joint name='f' type='ball' damping='0.1'/>"
    "<geom type='box' size='.1 .2 .3' pos='.2 0 .1'/></body>"
)
ON_FREE = "<general joint='f' gear='0 1 9 0 0 0' {gain} gainprm='9 {slopes}' biastype='affine' biasprm='1 {slopes}'/>"


def on_free(slopes: str, gain: str = "gaintype='affine'") -> str:
    return model(FREE, actuator=ON_FREE.format(gain=gain, slopes=slopes))


TENDON = {"tendon": "<fixed name='t'><joint joint='a' coef='1'/><joint joint='b' coef='-0.5'/></fixed>"}
SMOOTH = {
    "gravcomp": Smooth(arm(bodies="gravcomp='1'"), arm()),
    "gravcomp above 1": Smooth(arm(bodies="gravcomp='1.4'"), arm()),
    "gravcomp, and gravity aslant": Smooth(
        arm(bodies="gravcomp='0.6'", head="<option gravity='3 0 -5'/>"), arm(head="<option gravity='3 0 -5'/>")
    ),
    "actuatorfrcrange of a servo": Smooth(arm(SERVO, joint=RANGE), arm(SERVO), (0.5,)),
    "actuatorfrcrange and gear": Smooth(
        arm("<position joint='a' kp='15' kv='1' gear='-2'/>", joint=RANGE),
        arm("<position joint='a' kp='15' kv='1' gear='-2'/>"),
        (0.8,),
    ),
    "actuatorfrcrange of a motor": Smooth(arm("<motor joint='a'/>", joint=RANGE), arm("<motor joint='a'/>"), (20.0,)),
    "actuatorfrcrange of two motors": Smooth(
        arm("<motor joint='a'/><motor joint='a' gear='2'/>", joint=RANGE),
        arm("<motor joint='a'/><motor joint='a' gear='2'/>"),
        (30.0, -20.0),
    ),
    "actuatorfrcrange of a motor and a servo": Smooth(
        arm("<motor joint='a'/>" + SERVO, joint=RANGE), arm("<motor joint='a'/>" + SERVO), (4.0, 0.5)
    ),
    "actuatorfrcrange and a tendon": Smooth(
        arm("<motor tendon='t'/>", joint=RANGE, **TENDON), arm("<motor tendon='t'/>", **TENDON), (12.0,)
    ),
    "actuatorfrclimited": Smooth(arm(SERVO, joint=RANGE + " actuatorfrclimited='true'"), arm(SERVO), (0.5,)),
    "actuatorgravcomp within a range": Smooth(
        arm(SERVO, bodies="gravcomp='1'", joint=RANGE + " actuatorgravcomp='true'"),
        arm(SERVO, bodies="gravcomp='1'", joint=RANGE),
        (0.8,),
    ),
    "affine gain": Smooth(arm(general("3 2 -1", kind="affine")), arm(general()), (2.0,)),
    "affine gain that drives away": Smooth(arm(general("3 2 0.1", kind="affine")), arm(general()), (2.0,)),
    "affine gain and bias": Smooth(
        arm(general("3 -2 -1", "1 -2 -0.5", "affine")), arm(general(bias="1 -2 -0.5")), (-1.5,)
    ),
    "affine gain, control beyond its range": Smooth(arm(general("3 2 -1", kind="affine")), arm(general()), (20.0,)),
    "positive bias": Smooth(arm(general(bias="1 6 0.6")), arm(general()), (0.5,)),
    "positive bias of length": Smooth(arm(general(bias="1 6 -2")), arm(general()), (0.5,)),
    "positive bias of velocity": Smooth(arm(general(bias="1 -6 2")), arm(general()), (0.5,)),
    "servo on a free joint, which has no length": Smooth(on_free("-20 -3"), on_free("0 0"), (2.0,)),
    "positive gains on a free joint": Smooth(on_free("20 0.3"), on_free("0 0"), (2.0,)),
    "position of a free joint": Smooth(
        model(FREE, actuator="<position joint='f' gear='0 0 1 0 0 0' kp='200'/>"), model(FREE), (1.0,)
    ),
    "jointinparent of a hinge": Smooth(arm("<motor jointinparent='a' gear='2'/>"), arm(), (3.0,)),
    "control range without 0, of a motor": Smooth(arm("<general joint='a' gainprm='9' ctrlrange='1 2'/>"), arm()),
    "control range without 0, of a servo": Smooth(arm("<position joint='a' kp='9' ctrlrange='-2 -1'/>"), arm()),
    "control range without 0, of a velocity": Smooth(arm("<velocity joint='a' kv='3' ctrlrange='1 2'/>"), arm()),
    "control range without 0, of a damper": Smooth(arm("<damper joint='a' kv='3' ctrlrange='1 2'/>"), arm()),
    "control range without 0, of affine gain": Smooth(
        arm("<general joint='a' gaintype='affine' gainprm='3 -4 -1' ctrlrange='1 2'/>"), arm()
    ),
    "flag clampctrl": Smooth(
        arm(general(), head="<option><flag clampctrl='disable'/></option>"), arm(general()), (20.0,)
    ),
    "flag actuation": Smooth(
        arm("<motor joint='a'/>", head="<option><flag actuation='disable'/></option>"),
        arm("<motor joint='a'/>"),
        (5.0,),
    ),
    "actuatorgroupdisable": Smooth(
        arm("<motor joint='a' group='2'/>", head="<option actuatorgroupdisable='2'/>"),
        arm("<motor joint='a' group='2'/>"),
        (5.0,),
    ),
}


def of_mujoco(xml: str, ctrl: tuple[float, ...]) -> np.ndarray:
    """Coordinates after the span, in steps that are much finer."""
    compiled = mujoco.MjModel.from_xml_string(xml)
    compiled.opt.timestep = FINE
    data = mujoco.MjData(compiled)
    if ctrl:
        data.ctrl[:] = ctrl
    mujoco.mj_step(compiled, data, nstep=round(SPAN / FINE))
    return data.qpos.copy()


def of_poise(xml: str, ctrl: tuple[float, ...], dt: float, span: float = SPAN) -> np.ndarray:
    """Likewise, in steps of dt."""
    world = load_mjcf(xml).build(dt=dt)
    if ctrl:
        world.ctrl[:] = ctrl
    world.step(round(span / dt))
    return np.array(world.q)


@pytest.mark.filterwarnings("ignore::poise.io.LossWarning")
@pytest.mark.parametrize("case", SMOOTH.values(), ids=SMOOTH)
def test_moves_as_in_mujoco(case: Smooth) -> None:
    """Euler's method: the error halves with the step; it is far below what the feature makes of the motion."""
    wanted = of_mujoco(case.xml, case.ctrl)
    coarse, fine = (np.abs(of_poise(case.xml, case.ctrl, dt) - wanted).max() for dt in (0.004, 0.002))
    effect = np.abs(of_mujoco(case.without, case.ctrl) - wanted).max()
    assert coarse < 0.2 * effect
    assert fine < max(0.7 * coarse, 1e-4 * effect)


@pytest.mark.filterwarnings("ignore::poise.io.LossWarning")
@pytest.mark.parametrize(
    "name",
    [
        "gravcomp, and gravity aslant",
        "actuatorgravcomp within a range",
        "affine gain and bias",
        "positive bias",
        "control range without 0, of affine gain",
    ],
)
def test_batches_do_the_same(name: str) -> None:
    """Worlds in lanes, each with a control of its own, beside one world after another."""
    case = SMOOTH[name]
    scene = load_mjcf(case.xml)
    controls = np.linspace(-1.0, 1.0, 3)[:, None] * np.array(case.ctrl).reshape(1, -1)
    batch = scene.build_batch(3, dt=0.004, precision="f64", threads=1)
    if case.ctrl:
        batch.ctrl = controls
    batch.step(40)
    for row, ctrl in zip(batch.q, controls, strict=True):
        assert row == pytest.approx(of_poise(case.xml, tuple(ctrl), 0.004, 0.16), abs=1e-9)


# ---- contacts --------------------------------------------------------------------------------------------------------

GHOST = "contype='0' conaffinity='0'"
FLOOR = f"<geom name='floor' type='plane' size='0 0 1' friction='0.9' {GHOST}/>"
BOX = (
    "<body name='box' pos='0 0 0.1'><freejoint/>"
    f"<geom name='g' type='box' size='0.1 0.1 0.1' friction='0.9' {GHOST}/></body>"
)
PUSHED = "<key name='k' qpos='0 0 0.1 1 0 0 0' qvel='1 0 0 0 0 0'/>"
FLAP = (
    "<body name='post' pos='0 0 1'><joint name='s' type='slide' axis='0 0 1' range='-0.01 0.01'/>"
    "<geom name='p' type='box' size='0.1 0.1 0.1' pos='0 0 -0.5'/>"
    "<body name='flap' pos='0.25 0 0'><joint name='f' axis='0 1 0' damping='0.5'/>"
    "<geom name='q' type='capsule' fromto='0 0 -0.1 0 0 -0.6' size='0.05'/></body></body>"
)
ASLANT = "<option gravity='-6 0 -6'/>"
HILL = (
    "<asset><hfield name='h' nrow='3' ncol='4' size='1 1.5 0.4 0.2' elevation='0 1 2 3  1 2 3 4  2 3 4 6'/></asset>",
    "<geom type='hfield' hfield='h' pos='0.1 0 -0.2' euler='0 0 20'/>"
    "<body name='ball' pos='0.2 0.1 0.5'><freejoint/><geom size='0.08' friction='1'/></body>",
)
CONTACTS = {
    "pair of what meets nothing": model(
        FLOOR + BOX, contact="<pair geom1='floor' geom2='g' friction='0.2 0.2'/>", keyframe=PUSHED
    ),
    "pair without friction": model(FLOOR + BOX, contact="<pair geom1='g' geom2='floor' condim='1'/>", keyframe=PUSHED),
    "pair with the friction of its geoms": model(FLOOR + BOX, contact="<pair geom1='g' geom2='floor'/>"),
    "pair in place of contact": model(
        (FLOOR + BOX).replace(GHOST, ""), contact="<pair geom1='g' geom2='floor' friction='0.2 0.2'/>", keyframe=PUSHED
    ),
    "pair of parent and child": model(FLAP, head=ASLANT, contact="<pair geom1='p' geom2='q'/>"),
    "pair of excluded bodies": model(
        FLOOR.replace(GHOST, "") + BOX.replace(GHOST, ""),
        contact="<exclude body1='world' body2='box'/><pair geom1='g' geom2='floor' friction='0.2 0.2'/>",
        keyframe=PUSHED,
    ),
    "hfield by elevation": model(HILL[1], head=HILL[0]),
}


@pytest.mark.filterwarnings("ignore::poise.io.LossWarning")
@pytest.mark.parametrize("xml", CONTACTS.values(), ids=CONTACTS)
def test_touches_as_in_mujoco(xml: str) -> None:
    """MuJoCo's contacts are soft: at rest a body of 8 kg sinks by 0.2 mm, and blows last some steps of 2 ms."""
    compiled = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(compiled)
    scene = load_mjcf(xml)
    world = scene.build(dt=0.002)
    if compiled.nkey:
        mujoco.mj_resetDataKeyframe(compiled, data, 0)
        world.reset("k")
    mujoco.mj_step(compiled, data, nstep=200)
    world.step(200)
    assert world.q == pytest.approx(data.qpos, abs=0.03 if "hfield" in xml else 0.01)
    assert len(world.report().contacts) > 0 or data.ncon == 0
    # without its contacts it moves elsewhere
    compiled.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    through = mujoco.MjData(compiled)
    if compiled.nkey:
        mujoco.mj_resetDataKeyframe(compiled, through, 0)
    mujoco.mj_step(compiled, through, nstep=200)
    assert np.abs(through.qpos - data.qpos).max() > 0.2


def gray_png(pixels: np.ndarray) -> bytes:
    """An 8-bit grey picture."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows, columns = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", ["png", "bin"])
def test_hfield_of_a_file(kind: str, tmp_path) -> None:
    """A ball stands on each corner of the field as high as MuJoCo's rays find it."""
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4) ** 2
    data = gray_png(pixels)
    if kind == "bin":
        data = struct.pack("<ii", 3, 4) + pixels.astype("<f4").tobytes()
    (tmp_path / f"hill.{kind}").write_bytes(data)
    file = tmp_path / "hill.xml"
    file.write_text(
        model(
            "<geom name='hill' type='hfield' hfield='h' pos='0.3 0 0.1' euler='0 0 30'/>",
            head=f"<asset><hfield name='h' file='hill.{kind}' size='1 2 0.5 0.1'/></asset>",
        )
    )
    compiled = mujoco.MjModel.from_xml_path(str(file))
    seen = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, seen)
    scene = load_mjcf(file)
    assert scene.unsupported == []
    (field,) = scene.bodies[0].shapes
    turn = seen.geom("hill").xmat.reshape(3, 3)
    for row, y in enumerate(np.linspace(-1.98, 1.98, 3)):
        for column, x in enumerate(np.linspace(-0.99, 0.99, 4)):
            above = seen.geom("hill").xpos + turn @ (x, y, 3.0)
            down = mujoco.mj_ray(compiled, seen, above, np.array((0.0, 0.0, -1.0)), None, 1, -1, np.zeros(1, np.int32))
            assert field.heights[row, column] == pytest.approx(3.0 - down, abs=0.02)  # next to the corner
    assert field.extent == (2.0, 4.0)
    assert field.position == pytest.approx((0.3, 0.0, 0.1))


# ---- what is warned of -----------------------------------------------------------------------------------------------

SITE = GEOM + "<site name='s' pos='0 0 0.1'/><site name='r' pos='0 0 0.2'/>"
OTHER = f"<body name='other' pos='1 0 0'><joint name='k'/>{GEOM}<site name='o'/></body>"
FIXED = "<fixed name='t' {}><joint joint='j' coef='1'/></fixed>"
CORD = "<spatial name='t' {}><site site='s'/><site site='o'/></spatial>"
PAIR = "<geom name='x' size='1'/>" + limb("<geom name='y' size='1'/>")
PAIRED = {"contact": "<pair name='xy' geom1='x' geom2='y' {}/>"}


def paired(attributes: str) -> str:
    return model(PAIR, contact=PAIRED["contact"].format(attributes))


def driven(actuator: str, body: str = SITE, **sections: str) -> str:
    return model(limb(body) + OTHER, actuator=actuator, **sections)


LOSSES = {
    "activation filter": (driven("<general joint='j' name='m' dyntype='filter'/>"), "(m) with activation dynamics"),
    "activation integrator": (driven("<intvelocity joint='j' name='m' actrange='-1 1'/>"), "(m) with activation"),
    "position timeconst": (driven("<position joint='j' name='m' timeconst='0.1'/>"), "(m) with activation dynamics"),
    "cylinder": (driven("<cylinder joint='j' name='m'/>"), "(m) with activation dynamics"),
    "muscle": (driven("<muscle joint='j' name='m' lengthrange='0 1'/>"), "1 muscle actuator (m) without effect"),
    "adhesion": (driven("<adhesion body='limb' name='m' ctrlrange='0 1'/>"), "1 adhesion actuator (m) without effect"),
    "thruster": (driven("<motor site='s' name='m' gear='0 0 1 0 0 0'/>"), "(m) on sites"),
    "site reference": (driven("<position site='s' refsite='r' name='m'/>"), "(m) on sites"),
    "slider crank": (driven("<motor cranksite='s' slidersite='r' cranklength='1' name='m'/>"), "(m) on sites"),
    "spatial tendon motor": (driven("<motor tendon='t' name='m'/>", tendon=CORD.format("")), "(m) on sites"),
    "jointinparent of a ball": (
        model(BALL, actuator="<motor jointinparent='f' name='m' gear='1 2 3'/>"),
        "1 actuator (m) in the axes of the parent (jointinparent) of a ball or free joint: without effect",
    ),
    "jointinparent of a free body": (
        model(FREE, actuator="<motor jointinparent='f' name='m' gear='0 0 1 0 0 0'/>"),
        "1 actuator (m) in the axes of the parent (jointinparent) of a ball or free joint: without effect",
    ),
    "flex": (
        model("<flexcomp name='c' type='grid' count='3 3 1' spacing='.1 .1 .1' mass='1' radius='.01'/>"),
        "1 flex (c) not supported: its bodies are kept, its elasticity and its contacts are not",
    ),
    "pairs of the same geoms": (
        paired("condim='1'/><pair name='yx' geom1='y' geom2='x' condim='3'"),
        "1 contact pair (xy) without effect: the last one of the same geoms counts",
    ),
    "plugin": (
        driven(
            "<plugin joint='j' name='m' plugin='mujoco.pid'><config key='kp' value='4'/></plugin>",
            extension="<plugin plugin='mujoco.pid'/>",
        ),
        "1 plugin actuator (m) without effect",
    ),
    "shared range": (
        model(
            limb(joint="<joint name='j' actuatorfrcrange='-1 1'/>"),
            actuator="<position joint='j' kp='2'/><velocity joint='j' kv='2'/>",
        ),
        "(j) with actuatorfrcrange and several servos",
    ),
    "tendon spring": (model(limb(), tendon=FIXED.format("stiffness='2'")), "1 tendon (t) with springs"),
    "tendon damper": (model(limb(), tendon=FIXED.format("damping='2'")), "1 tendon (t) with dampers"),
    "tendon limit": (model(limb(), tendon=FIXED.format("range='0 1' limited='true'")), "1 tendon (t) with limits"),
    "tendon friction": (model(limb(), tendon=FIXED.format("frictionloss='1'")), "1 tendon (t) with dry friction"),
    "tendon": (model(limb(SITE) + OTHER, tendon=CORD.format("")), "1 tendon (t) not kept"),
    "soft equality": (
        model(limb() + OTHER, equality="<joint name='e' joint1='j' joint2='k' solref='0.5 1'/>"),
        "1 equality (e) with solref",
    ),
    "tendon equality": (
        model(limb(), tendon=FIXED.format(""), equality="<tendon name='e' tendon1='t'/>"),
        "1 tendon equality (e) not supported",
    ),
    "geom margin": (model(limb("<geom name='g' size='1' margin='0.05'/>")), "1 geom (g) with a contact margin"),
    "geom gap": (model(limb("<geom name='g' size='1' margin='0.1' gap='0.05'/>")), "1 geom (g) with a contact gap"),
    "geom solref": (model(limb("<geom name='g' size='1' solref='0.1 1'/>")), "1 geom (g) with solref"),
    "geom solmix": (model(limb("<geom name='g' size='1' solmix='2'/>")), "1 geom (g) with solref, solimp or solmix"),
    "geom fluidshape": (model(limb("<geom name='g' size='1' fluidshape='ellipsoid'/>")), "1 geom (g) with fluid"),
    "pair margin": (paired("margin='0.1'"), "1 contact pair (xy) with a margin"),
    "pair gap": (paired("gap='0.1' margin='0.2'"), "1 contact pair (xy) with a gap"),
    "pair solref": (paired("solref='0.1 1'"), "1 contact pair (xy) with solref"),
    "pair solreffriction": (paired("solreffriction='0.1 1'"), "1 contact pair (xy) with solref"),
    "pair uneven friction": (paired("friction='1 0.5'"), "1 contact pair (xy) with friction that depends"),
    "flag filterparent": (model(limb(), head="<option><flag filterparent='disable'/></option>"), "filterparent"),
    "flag override": (model(limb(), head="<option><flag override='enable'/></option>"), "(override) ignored"),
    "limit margin": (
        model(limb(joint="<joint name='j' range='-1 1' limited='true' margin='0.1'/>")),
        "1 joint (j) with a limit margin",
    ),
    "solreflimit": (
        model(limb(joint="<joint name='j' range='-1 1' limited='true' solreflimit='0.1 1'/>")),
        "1 joint (j) with solreflimit",
    ),
    "solreffriction": (
        model(limb(joint="<joint name='j' frictionloss='1' solreffriction='0.1 1'/>")),
        "1 joint (j) with solreffriction",
    ),
    "ball range": (model(limb(joint="<joint name='j' type='ball' range='0 1' limited='true'/>")), "1 ball joint (j)"),
    "fluid": (model(limb(), head="<option density='1.2'/>"), "fluid (density 1.2)"),
    "wind": (model(limb(), head="<option wind='1 0 0'/>"), "wind 1 0 0"),
    "site": (model(limb(SITE)), "2 sites (s, r) not kept"),
    "sensor": (model(limb(), sensor="<jointpos name='p' joint='j'/>"), "1 sensor (p) not kept"),
    "camera": (model("<camera name='eye'/>"), "1 camera (eye) not kept"),
    "moving plane": (
        model("<body name='limb' mocap='true'><geom name='deck' type='plane' size='1 1 1'/></body>"),
        "(deck) on moving bodies left out",
    ),
    "key act": (
        driven("<general joint='j' dyntype='filter'/>", keyframe="<key qpos='0 0' act='0.5'/>"),
        "with activations (act)",
    ),
    "user": (model(limb(), size="", head="<size nuser_body='1'/>"), "user data"),
    "custom": (model(limb(), custom="<numeric name='n' data='1'/>"), "1 custom numeric (n) not kept"),
    "integrator": (model(limb(), head="<option integrator='RK4'/>"), "integrator rk4"),
}
NEWER = {
    "actuator armature": (driven("<motor joint='j' name='m' armature='1'/>"), "(m) with armature"),
    "actuator damping": (driven("<motor joint='j' name='m' damping='1'/>"), "(m) with damping"),
    "actuator damping, of higher order alone": (
        driven("<motor joint='j' name='m' damping='0 1'/>"),
        "(m) with damping of their own",
    ),
    "actuator delay": (driven("<motor joint='j' name='m' delay='0.01' nsample='8'/>"), "(m) with a delay"),
    "orientation": (
        model(limb(joint="<joint name='j' type='ball'/>"), actuator="<orientation joint='j' name='m' kp='1'/>"),
        "1 so3 actuator (m) without effect",
    ),
    "geom adhesion": (model(limb("<geom name='g' size='1' adhesion='1'/>")), "1 geom (g) with adhesion"),
    "geom surfacevel": (model(limb("<geom name='g' size='1' surfacevel='1 0 0'/>")), "(g) with a surface velocity"),
    "pair adhesion": (paired("adhesion='1'"), "1 contact pair (xy) with adhesion"),
    "springyield": (model(limb(joint="<joint name='j' stiffness='1' springyield='1'/>")), "(j) with a yielding spring"),
    "stiffness polynomial": (model(limb(joint="<joint name='j' stiffness='1 2'/>")), "(j) with a nonlinear spring"),
    "damping polynomial": (model(limb(joint="<joint name='j' damping='1 2'/>")), "(j) with nonlinear damping"),
}
"""What only newer versions of MuJoCo have."""


def losses(xml: str) -> str:
    """The one warning of a file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_mjcf(xml)
    (warning,) = (one for one in caught if one.category is LossWarning)
    return str(warning.message)


@pytest.mark.parametrize(("xml", "said"), LOSSES.values(), ids=LOSSES)
def test_is_warned_of(xml: str, said: str) -> None:
    assert said in losses(xml)


@pytest.mark.parametrize(("xml", "said"), NEWER.values(), ids=NEWER)
def test_of_newer_versions_is_warned_of(xml: str, said: str) -> None:
    if _MUJOCO >= (4, 0):
        assert said in losses(xml)
    else:
        with pytest.raises(SceneError, match="MuJoCo cannot read this model"):
            load_mjcf(xml)


@pytest.mark.skipif(_MUJOCO < (4, 0), reason="an actuator has one control")
@pytest.mark.filterwarnings("ignore::poise.io.LossWarning")
def test_actuators_after_one_with_several_controls() -> None:
    """MuJoCo has a gear, a range of controls and a control in keyframes for each of the three of an orientation."""
    still = "<option gravity='0 0 0'/>"
    hinge = f"<body name='other' pos='3 0 1'><joint name='k'/>{GEOM}</body>"
    motor = "<motor joint='k' name='m' gear='5' ctrlrange='-0.1 0.3'/>"
    key = "<key name='k' ctrl='{}0.2'/>"
    both = model(
        BALL + hinge,
        head=still,
        actuator="<orientation joint='f' name='turn' kp='1'/>" + motor,
        keyframe=key.format("0 0 0 "),
    )
    alone = model(BALL + hinge, head=still, actuator=motor, keyframe=key.format(""))
    for xml in (both, alone):
        world = load_mjcf(xml).build(dt=0.002)
        world.reset("k")
        assert world.ctrl[-1] == 0.2
        world.step(50)
        of_first = world.q[-1]
        world.ctrl[-1] = 5.0
        world.step()
        assert world.motor("m").force == 0.3
    compiled = mujoco.MjModel.from_xml_string(both)
    data = mujoco.MjData(compiled)
    mujoco.mj_resetDataKeyframe(compiled, data, 0)
    mujoco.mj_step(compiled, data, nstep=50)
    assert of_first == pytest.approx(data.qpos[-1], rel=1e-9)


def test_physics_comes_first() -> None:
    xml = model(
        "<camera name='eye'/>" + limb(SITE + "<geom name='g' size='1' margin='1'/>") + OTHER,
        actuator="<muscle joint='j' name='m' lengthrange='0 1'/>",
        tendon=CORD.format("stiffness='2'"),
    )
    said = losses(xml)
    order = [said.index(part) for part in ("muscle", "springs", "margin", "sites (", "camera (")]
    assert order == sorted(order)


@pytest.mark.filterwarnings("ignore::poise.io.LossWarning")
def test_plugin_actuators_are_no_motors() -> None:
    world = load_mjcf(LOSSES["plugin"][0]).build()
    world.ctrl[:] = 100.0
    world.step(5)
    assert world.motor("m").force == 0.0
