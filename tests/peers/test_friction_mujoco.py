"""Friction of contacts beside MuJoCo: coefficients of pairs of geoms with any friction, priority and condim."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
import pytest

from poise.constraints.combining import Combined, combined
from poise.io.losses import LossWarning
from poise.io.mjcf import load_mjcf

#: MuJoCo raises smaller coefficients to this one (mjMINMU)
LEAST = 1e-5
PAIRS = 200
#: states at which the contacts of a robot are compared
STATES = 6


def expected(contact: mujoco._structs.MjContact) -> Combined:
    """The coefficients of a contact of MuJoCo, 0 where its condim leaves them out."""
    sliding, _, torsional, rolling, _ = contact.friction
    return Combined(
        sliding if contact.dim >= 3 else 0.0,
        torsional if contact.dim >= 4 else 0.0,
        rolling if contact.dim >= 6 else 0.0,
        0.0,
    )


def pairs_of_balls(rng: np.random.Generator) -> str:
    """Balls that overlap two by two."""
    bodies = []
    for k in range(2 * PAIRS):
        friction = rng.choice([0.0, 0.1, 0.5, 1.0, 3.0], 3) * (1.0, 0.05, 0.01)
        kind = f'condim="{rng.choice((1, 3, 4, 6))}" priority="{rng.integers(-1, 2)}"'
        place = f"{k // 2} 0 {0.05 * (k % 2)}"
        geom = f'<geom size="0.1" friction="{" ".join(map(str, friction))}" {kind}/>'
        bodies.append(f'<body pos="{place}"><freejoint/>{geom}</body>')
    return f"<mujoco><worldbody>{''.join(bodies)}</worldbody></mujoco>"


@pytest.mark.parametrize("seed", range(3))
def test_any_pair_of_surfaces(seed: int) -> None:
    text = pairs_of_balls(np.random.default_rng(seed))
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    solids = load_mjcf(text).compile().solids
    assert data.ncon == PAIRS
    found = np.array([combined(solids, *(int(g) for g in contact.geom)) for contact in data.contact])
    assert found == pytest.approx(np.array([expected(contact) for contact in data.contact]), abs=LEAST)


def robots() -> list[Path]:
    """Models of dm_control, and of MuJoCo Menagerie where they are at hand."""
    suite = find_spec("dm_control")
    assert suite is not None
    menagerie = Path(__file__).resolve().parents[3] / "shared" / "data" / "menagerie"
    return [*sorted((Path(str(suite.origin)).parent / "suite").glob("*.xml")), *sorted(menagerie.glob("*/*.xml"))]


def with_named_geoms(file: Path) -> str:
    """A model whose geoms all have names, without pictures; cubes stand for meshes, whose files may not be at hand."""
    spec = mujoco.MjSpec.from_file(str(file))
    for k, geom in enumerate(spec.geoms):
        geom.name = geom.name or f"geom of line {k}"
    for mesh in spec.meshes:
        mesh.name, mesh.file = mesh.name or Path(mesh.file).stem, ""
        mesh.uservert = np.array(list(np.ndindex(2, 2, 2))).ravel() * 0.02
        mesh.scale = np.ones(3)
    for field in spec.hfields:
        field.file, field.nrow, field.ncol, field.userdata = "", 2, 2, np.zeros(4)
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    for part in (*spec.textures, *spec.skins):
        spec.delete(part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of old attributes
        return str(spec.to_xml())


def states(model: mujoco.MjModel, rng: np.random.Generator) -> Iterator[mujoco.MjData]:
    """Random poses near the rest pose, low enough for what is free to be in the floor."""
    data = mujoco.MjData(model)
    for _ in range(STATES):
        mujoco.mj_resetData(model, data)
        step = rng.normal(0.0, 0.5, model.nv)
        for j in np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
            start, height = int(model.jnt_dofadr[j]), data.qpos[model.jnt_qposadr[j] + 2]
            step[start : start + 3] = (0.0, 0.0, -0.2 - height * rng.uniform(0.0, 1.0))
        mujoco.mj_integratePos(model, data.qpos, step, 1.0)
        mujoco.mj_forward(model, data)
        yield data


def compared(file: Path, rng: np.random.Generator) -> int:
    """Compare the contacts of a robot in some states; how many there were."""
    text = with_named_geoms(file)
    peer = mujoco.MjModel.from_xml_string(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LossWarning)
        solids = load_mjcf(text).compile().solids
    own = {frozenset(pair) for pair in zip(peer.pair_geom1.tolist(), peer.pair_geom2.tolist(), strict=True)}
    n = 0
    for data in states(peer, rng):
        for contact in data.contact:
            pair = frozenset(int(g) for g in contact.geom)
            names = [peer.geom(g).name for g in pair]
            if pair not in own and set(names) <= set(solids.names):
                found = combined(solids, *map(solids.names.index, names))
                assert found == pytest.approx(expected(contact), abs=LEAST), (file, names)
                n += 1
    return n


@pytest.mark.slow
def test_contacts_of_robots() -> None:
    counts = {f"{file.parent.name}/{file.name}": compared(file, np.random.default_rng(1)) for file in robots()}
    assert sum(n > 0 for n in counts.values()) >= 5, counts
    assert sum(counts.values()) > 100, counts
