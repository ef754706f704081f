"""The state: checkpoints to the last bit, files, keyframes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from poise.model.errors import SceneError
from poise.model.scene import Body, Joint, Keyframe, Scene
from poise.model.shapes import box, sphere
from poise.model.state import State


def scene() -> Scene:
    return Scene(
        bodies=[
            Body("a", joints=[Joint("free")], position=(0, 0, 1), shapes=[sphere(0.1)]),
            Body("b", "a", joints=[Joint("ball")], shapes=[box(1, 2, 3)]),
            Body("c", "b", joints=[Joint("hinge", rest=0.25)], shapes=[box(1, 2, 3)]),
        ]
    )


@pytest.fixture
def model():
    return scene().compile()


@pytest.fixture
def state(model):
    state = State.rest(model)
    state.v[:] = np.random.default_rng(0).normal(size=model.nv)
    state.time = 0.1 + 0.2
    state.slots = {"warm": np.array([1.5, -0.0]), "ids": np.array([[3, 4]], dtype=np.int32)}
    return state


def test_rest(model):
    state = State.rest(model)
    assert state.q.tolist() == model.q_rest.tolist()
    assert not state.v.any()
    state.q[0] = 7.0
    assert model.q_rest[0] == 0.0


def test_copy_is_independent(state):
    copy = state.copy()
    assert copy.same_bits(state)
    copy.q[0] = 9.0
    copy.slots["warm"][0] = 9.0
    assert state.q[0] == 0.0
    assert state.slots["warm"][0] == 1.5


def test_restore_keeps_the_arrays(state):
    saved = state.copy()
    q, warm = state.q, state.slots["warm"]
    state.q += 1.0
    state.v *= 2.0
    state.time = 5.0
    warm[:] = 0.0
    state.slots["ids"] = np.zeros(7)
    state.slots["new"] = np.ones(1)
    state.restore(saved)
    assert state.same_bits(saved)
    assert state.q is q
    assert state.slots["warm"] is warm
    state.slots["ids"][0] = 8
    assert saved.slots["ids"][0, 0] == 3


def test_restore_from_another_model(state):
    other = State(np.zeros(3), np.zeros(2))
    before = state.copy()
    with pytest.raises(SceneError, match="q: a state of another model: this one has 12 numbers, the other 3"):
        state.restore(other)
    assert state.same_bits(before)


floats = hnp.arrays(np.float64, 3, elements=st.floats())


@given(floats, floats, st.floats())
def test_restore_to_the_last_bit(q, v, time):
    """Infinities, NaN and −0 included."""
    saved = State(q, v, time, {"s": q[::-1].copy()})
    state = State(np.ones(3), np.ones(3), 1.0, {"s": np.ones(3)})
    state.restore(saved)
    assert state.same_bits(saved)
    assert saved.copy().same_bits(saved)


def test_same_bits_sees_everything(state):
    for change in (
        lambda s: s.q.__setitem__(0, -0.0),
        lambda s: s.v.__setitem__(1, np.nextafter(s.v[1], 9)),
        lambda s: setattr(s, "time", 0.3),
        lambda s: s.slots.pop("warm"),
        lambda s: s.slots.update(more=np.zeros(1)),
        lambda s: s.slots.update(warm=s.slots["warm"].astype(np.float32)),
        lambda s: s.slots.update(ids=s.slots["ids"].reshape(2)),
        lambda s: s.slots["warm"].__setitem__(1, 0.0),
    ):
        other = state.copy()
        change(other)
        assert not state.same_bits(other)


# ---------------------------------------------------------------------------------------------------- files


def test_file_round_trip(state, model, tmp_path):
    path = tmp_path / "state.poise"
    state.save(path, model)
    assert [p.name for p in tmp_path.iterdir()] == ["state.poise"]
    found = State.load(str(path), model)
    assert found.same_bits(state)
    found.q[0] = 1.0


def test_saving_again_replaces(state, model, tmp_path):
    path = tmp_path / "state"
    state.save(path, model)
    state.time = 9.0
    state.save(path, model)
    assert State.load(path, model).time == 9.0


def test_saving_nowhere(state, model, tmp_path):
    with pytest.raises(SceneError, match="there is no such folder to save to"):
        state.save(tmp_path / "no" / "state", model)


def test_objects_are_not_saved(state, model, tmp_path):
    state.slots["bad"] = np.array([{}], dtype=object)
    with pytest.raises(SceneError, match='slot "bad": only arrays of numbers can be saved, found object'):
        state.save(tmp_path / "state", model)
    assert not list(tmp_path.iterdir())


def test_state_of_another_model(state, model, tmp_path):
    path = tmp_path / "state"
    state.save(path, model)
    fewer = scene()
    fewer.bodies.pop()
    fewer.bodies[1].joints[0].name = "hip"
    with pytest.raises(SceneError) as error:
        State.load(path, fewer.compile())
    assert str(error.value) == (
        f'{path}: a state of another model ("scene"): nq is 12 there and 11 here; nv is 10 there and 9 here; '
        "joints only there: b, c; joints only here: hip"
    )
    heavier = scene()
    heavier.bodies[0].shapes[0].density = 7.0
    with pytest.raises(
        SceneError, match="the same coordinates, but other values of body_mass, body_inertia, link_mass"
    ):
        State.load(path, heavier.compile())


def test_cut_short_at_every_length(state, model, tmp_path):
    path = tmp_path / "state"
    state.save(path, model)
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(SceneError, match="not a state that Poise saved"):
            State.load(path, model)


def test_flipped_bytes_never_crash(state, model, tmp_path):
    """A damaged file is an error, or (where nothing that matters was hit) the state itself."""
    path = tmp_path / "state"
    state.save(path, model)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(150):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(damaged))
        try:
            found = State.load(path, model)
        except SceneError:
            refused += 1
        else:
            assert found.q.tolist() == state.q.tolist()
            assert found.v.tolist() == state.v.tolist()
    assert refused > 100


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a state that Poise saved"),
        (b"hello, world", "not a state that Poise saved"),
        (b"PK\x03\x04 nonsense", "not a state that Poise saved"),
        (b"\x80\x04K\x01.", "not a state that Poise saved"),
    ],
)
def test_foreign_files(model, tmp_path, content, message):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(SceneError, match=message):
        State.load(path, model)


def test_other_numpy_files(model, tmp_path):
    plain, archive = tmp_path / "plain.npy", tmp_path / "archive.npz"
    np.save(plain, np.zeros(3))
    np.savez(archive, q=np.zeros(3))
    with pytest.raises(SceneError, match="not a state that Poise saved"):
        State.load(plain, model)
    with pytest.raises(SceneError, match="its header is missing or damaged"):
        State.load(archive, model)
    np.savez(archive, header=np.array([{}], dtype=object))
    with pytest.raises(SceneError, match="not a state that Poise saved"):
        State.load(archive, model)


def test_no_file(model, tmp_path):
    with pytest.raises(SceneError, match="nothing: there is no such file"):
        State.load(tmp_path / "nothing", model)
    with pytest.raises(SceneError, match="must be a file, found a folder"):
        State.load(tmp_path, model)


def rewritten(path, state, model, **changes):
    """A file whose parts were changed after saving."""
    state.save(path, model)
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files}
    header = json.loads(content["header"].tobytes())
    header.update(changes.pop("header", {}))
    content["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    content.update(changes)
    with path.open("wb") as stream:
        np.savez(stream, **{name: array for name, array in content.items() if array is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"header": {"format_version": 99}}, "written in format 99 by Poise .*, this Poise reads format 1"),
        ({"header": {"format": "other"}}, "its header is missing or damaged"),
        ({"q": None}, "the file is damaged, q missing"),
        ({"q": np.zeros(5)}, r"q: must be 12 finite numbers, found float64\(5,\)"),
        ({"v": np.full(10, np.nan)}, "v: must be 10 finite numbers"),
        ({"q": np.zeros(12, dtype=np.int64)}, "q: must be 12 finite numbers, found int64"),
        ({"time": np.array(math.inf)}, "time: must be a finite number"),
        ({"time": np.zeros(2)}, "time: must be a finite number"),
    ],
)
def test_changed_parts(state, model, tmp_path, changes, message):
    path = tmp_path / "state"
    rewritten(path, state, model, **changes)
    with pytest.raises(SceneError, match=message):
        State.load(path, model)


# ---------------------------------------------------------------------------------------------------- keyframes


def test_keyframe_by_name_and_number(model):
    posed = scene()
    q = (1, 2, 3, 0, 0, 0, 2, 0, 3, 0, 0, 0.5)
    posed.keyframes = [Keyframe("rest"), Keyframe("jump", time=1.5, q=q, v=tuple(range(10)), control=(0.5,))]
    state = State.from_keyframe(posed, "jump", model)
    assert state.q.tolist() == [1, 2, 3, 0, 0, 0, 1, 0, 1, 0, 0, 0.5]
    assert state.v.tolist() == list(range(10))
    assert state.time == 1.5
    assert state.slots["control"].tolist() == [0.5]
    assert State.from_keyframe(posed, 1).same_bits(state)
    assert State.from_keyframe(posed).same_bits(State.rest(model))


def test_bad_keyframes(model):
    posed = scene()
    with pytest.raises(SceneError, match="there is no keyframe 0; the scene has none"):
        State.from_keyframe(posed)
    posed.keyframes = [Keyframe("home"), Keyframe("flat", q=(0,) * 12), Keyframe("short", v=(1, 2))]
    with pytest.raises(SceneError, match='there is no keyframe "hone", did you mean "home"'):
        State.from_keyframe(posed, "hone")
    for key in (3, -1):
        with pytest.raises(SceneError, match=f"there is no keyframe {key}; there are 3, counted from 0"):
            State.from_keyframe(posed, key)
    with pytest.raises(SceneError, match=r"by its name or number, found 1\.0"):
        State.from_keyframe(posed, 1.0)
    with pytest.raises(SceneError, match=r'keyframe "flat": q\[3:7\]: must be a rotation'):
        State.from_keyframe(posed, "flat", model)
    with pytest.raises(SceneError, match='keyframe "short": v: must be 10 numbers, found 2'):
        State.from_keyframe(posed, "short", model)
    # with the model at hand the scene is not checked again, but the keyframe is
    for q in ((0.0,) * 11 + (float("nan"),), "twelve words", ("x",) * 12, 3):
        posed.keyframes = [Keyframe("bad", q=q)]
        with pytest.raises(SceneError, match='keyframe "bad": q'):
            State.from_keyframe(posed, "bad", model)


def test_who_reads_a_file_that_is_written_anew_reads_the_old_one(model, tmp_path):
    """A new state takes the place of the old one at once; nobody ever sees half of it."""
    path = tmp_path / "state.npz"
    State.rest(model).save(path, model)
    before = path.read_bytes()
    with path.open("rb") as reader:
        moved = State.rest(model)
        moved.time = 3.0
        moved.save(path, model)
        assert reader.read() == before
    assert State.load(path, model).time == 3.0
    assert [file.name for file in tmp_path.iterdir()] == ["state.npz"]
