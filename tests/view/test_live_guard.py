"""Who may use the live viewer, and what they may say: names, tokens, messages, uploads, several browsers."""

import http.client
import socket
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

import poise
from live_client import CAMERA, connected, pack
from poise.view.live import Viewer


def ball():
    scene = poise.Scene(name="ball")
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
    return scene


@contextmanager
def running(source=None, **options):
    """A viewer that runs in a thread."""
    viewer = Viewer(source or ball(), port=0, paused=True, **options)
    ended = []

    def run():
        try:
            viewer.run()
        except BaseException as problem:
            ended.append(problem)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield viewer
        assert ended == []
        assert thread.is_alive()
    finally:
        viewer.end()
        thread.join(20)
        viewer.close()


@pytest.fixture(scope="module")
def viewer():
    with running() as found:
        yield found


def wait(until, seconds=20.0):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        if until():
            return True
        time.sleep(0.02)
    return False


def get(viewer, path=None, **headers):
    """Status, headers and text of an answer."""
    line = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=10)
    line.putrequest("GET", urlsplit(viewer.address).path if path is None else path, skip_host="Host" in headers)
    for name, value in headers.items():
        line.putheader(name, value)
    line.endheaders()
    answer = line.getresponse()
    found = answer.status, answer.headers, answer.read().decode("utf-8", errors="replace")
    line.close()
    return found


# ---- names and origins -----------------------------------------------------------------------------------------------


def test_the_printed_address_opens_the_page(viewer):
    status, headers, text = get(viewer)
    assert status == 200
    assert "<html" in text
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "", "[::1"])
def test_pages_are_refused_under_other_names(viewer, host):
    status, _, text = get(viewer, Host=host.format(port=viewer.port))
    assert status in (400, 403)
    assert "<html" not in text


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "LOCALHOST:9", "localhost"])
def test_loopback_names_are_accepted(viewer, host):
    assert get(viewer, Host=host.format(port=viewer.port))[0] == 200


ORIGINS = [
    "https://evil.example",
    "null",
    "http://127.0.0.1:1",
    "http://127.0.0.1",
    "file://",
    "http://localhost:{port}",
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_websockets_of_other_origins_are_refused(viewer, origin):
    with pytest.raises(InvalidStatus) as refused, connected(viewer.address, origin=origin.format(port=viewer.port)):
        pass
    assert refused.value.response.status_code == 403


def test_pages_of_other_origins_are_refused(viewer):
    assert get(viewer, Origin="https://evil.example")[0] == 403


def test_the_page_s_own_origin_is_accepted(viewer):
    with connected(viewer.address, origin=f"http://127.0.0.1:{viewer.port}") as client:
        assert client.control("Play")


def test_other_names_are_accepted_where_they_are_named():
    with running(allow=["robot.lab"]) as viewer:
        assert get(viewer, Host="robot.lab:80")[0] == 200
        assert get(viewer, Host="Robot.Lab")[0] == 200
        assert get(viewer, Host="evil.example")[0] == 403
        assert get(viewer, Host="robot.lab", Origin="https://robot.lab")[0] == 200


@pytest.mark.parametrize("name", ["", "http://robot.lab", "robot.lab/x", "*"])
def test_names_must_be_names(name):
    with pytest.raises(ValueError, match="allow"):
        Viewer(ball(), port=0, allow=[name])


def test_all_addresses_accept_that_at_which_they_were_reached():
    with running(host="0.0.0.0") as viewer:
        assert get(viewer, Host=f"127.0.0.1:{viewer.port}")[0] == 200
        assert get(viewer, Host=f"0.0.0.0:{viewer.port}")[0] == 403
        assert get(viewer, Host=f"10.1.2.3:{viewer.port}")[0] == 403


# ---- the token -------------------------------------------------------------------------------------------------------


def test_addresses_have_a_token_of_their_own(viewer):
    path = urlsplit(viewer.address).path
    assert len(path.strip("/")) >= 22
    with Viewer(ball(), port=0) as other:
        assert urlsplit(other.address).path != path


def wrong_paths(viewer):
    path = urlsplit(viewer.address).path
    token = path.strip("/")
    return [
        "/",
        "/index.html",
        f"/{token[:-1]}/",
        f"/{token}x/",
        f"//{token}/",
        f"/x/{token}/",
        "/%00/",
        "/é/",
        "/" + "a" * 5000,
    ]


@pytest.mark.parametrize("number", range(9))
def test_pages_need_the_token(viewer, number):
    path = wrong_paths(viewer)[number].encode("utf-8").decode("latin-1")
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=10) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{viewer.port}\r\n\r\n".encode("latin-1"))
        answer = line.recv(100_000).decode("latin-1")
    assert answer.split()[1] in ("400", "403")
    assert "<html" not in answer
    assert urlsplit(viewer.address).path.strip("/") not in answer


@pytest.mark.parametrize("number", range(6))
def test_websockets_need_the_token(viewer, number):
    address = f"http://127.0.0.1:{viewer.port}{wrong_paths(viewer)[number]}"
    with pytest.raises(InvalidStatus) as refused, connected(address):
        pass
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    "path",
    ["../../__init__.py", "%2e%2e/%2e%2e/__init__.py", "..%5c..%5c__init__.py", "C:/Windows/win.ini", "/etc/passwd"],
)
def test_files_beside_the_page_are_not_served(viewer, path):
    status, _, text = get(viewer, f"{urlsplit(viewer.address).path}{path}")
    assert status == 404
    assert len(text) < 100


# ---- messages --------------------------------------------------------------------------------------------------------

UPDATE = {"type": "GuiUpdateMessage", "uuid": "x", "updates": {"value": 1}}
DRAG = {
    "type": "SceneNodeDragMessage",
    "phase": "start",
    "name": "/world/1/0",
    "instance_index": None,
    "start_position": [0.0, 0.0, 1.0],
    "start_screen_pos": [0.5, 0.5],
    "end_position": [0.0, 0.0, 1.2],
    "end_screen_pos": [0.5, 0.5],
    "button": "left",
    "modifier": None,
}
START = {
    "type": "FileTransferStartUpload",
    "source_component_uuid": "x",
    "transfer_uuid": "y",
    "filename": "a.yaml",
    "mime_type": "",
    "part_count": 1,
    "size_bytes": 10,
}
MALFORMED = {
    "text": '{"type": "GuiUpdateMessage"}',
    "empty": b"",
    "garbage": bytes(range(128, 256)) * 40,
    "no map": pack([1, 2]),
    "cut off": pack(CAMERA)[:-3],
    "more after it": pack(UPDATE) + b"\x00",
    "deep": b"\x91" * 100_000 + b"\xc0",
    "deep within": pack({**UPDATE, "updates": {}})[:-1] + b"\x81\xa5value" + b"\x91" * 900 + b"\xc0",
    "no type": pack({"uuid": "x"}),
    "type of no kind": pack({"type": ["GuiUpdateMessage"]}),
    "unknown": pack({"type": "NoSuchMessage"}),
    "from servers": pack({"type": "RunJavascriptMessage", "source": "alert(1)"}),
    "share": pack({"type": "ShareUrlRequest"}),
    "missing field": pack({"type": "GuiUpdateMessage", "uuid": "x"}),
    "other field": pack({**UPDATE, "excluded_self_client": 0}),
    "wrong type": pack({**UPDATE, "uuid": 7}),
    "no updates": pack({**UPDATE, "updates": []}),
    "other property": pack({**UPDATE, "updates": {"__class__": 1}}),
    "unknown control": pack(UPDATE),
    "short vector": pack({**CAMERA, "position": [1.0, 2.0]}),
    "nan": pack({**CAMERA, "fov": float("nan")}),
    "infinite": pack({**CAMERA, "position": [float("inf"), 0.0, 0.0]}),
    "huge": pack({**CAMERA, "image_width": 2**63}),
    "huge float": pack({**DRAG, "end_position": [1e300, 0.0, 0.0]}),
    "true is no number": pack({**CAMERA, "fov": True}),
    "phase": pack({**DRAG, "phase": "begin"}),
    "huge upload": pack({**START, "size_bytes": 2**50, "part_count": 2**30}),
    "negative upload": pack({**START, "size_bytes": -1}),
    "part of nothing": pack(
        {
            "type": "FileTransferPart",
            "source_component_uuid": "x",
            "transfer_uuid": "z",
            "part_index": 0,
            "content": b"a",
        }
    ),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_malformed_messages_are_answered(viewer, kind):
    with connected(viewer.address) as client:
        client.send(MALFORMED[kind])
        assert client.notice("Message refused")
        was = viewer.session.time
        client.set("Step", "Step")  # the same connection, and the same session, go on
        assert wait(lambda: viewer.session.time > was)


VALUES = ["abc", None, float("nan"), float("inf"), -1e300, 1e300, [], [1], {}, -1, 10**15, "x" * 10_000, 0.5, b"a"]
CONTROLS = [
    "Step",
    "History",
    "Speed",
    "Shapes",
    "Gravity ×",
    "Coordinates",
    "Level",
    "Integrator",
    "Solver",
    "Substeps",
]


@pytest.mark.parametrize("label", CONTROLS)
def test_values_that_no_control_has_are_answered(viewer, label):
    fits = {"Speed": (0.5,), "Gravity ×": (0.5,)}.get(label, ())
    with connected(viewer.address) as client:
        for value in VALUES:
            if value in fits:
                continue
            client.set(label, value)
            assert client.notice("Message refused"), value


def test_controls_still_work(viewer):
    with connected(viewer.address) as client:
        client.set("Gravity ×", 1)  # a whole number, as JavaScript writes it
        client.set("Level", "acceleration")
        assert wait(lambda: viewer.session.settings.formulation.level == "acceleration")
        client.set("Level", "velocity")
        assert wait(lambda: viewer.session.settings.formulation.level == "velocity")
        client.set("Shapes", False)
        assert wait(lambda: not viewer.front.shown.shapes)
        client.set("Shapes", True)
        assert client.notice("Message refused", 0.3) == ""


def test_messages_are_bounded(viewer):
    with connected(viewer.address) as client:
        client.send(pack({"type": "x" * 40_000_000}))
        with pytest.raises(ConnectionClosed) as closed:
            client.listen(20.0)
        assert closed.value.rcvd.code == 1009
    with connected(viewer.address) as client:
        assert client.control("Play")


def test_uploads_are_bounded_together(viewer):
    with connected(viewer.address) as client:
        many = {**START, "source_component_uuid": client.control("Load"), "size_bytes": 2**27, "part_count": 1}
        for k in range(2):
            client.send({**many, "transfer_uuid": str(k)})
        assert client.notice("Message refused")
        part = {"type": "FileTransferPart", "source_component_uuid": many["source_component_uuid"], "part_index": 0}
        client.send({**START, "source_component_uuid": part["source_component_uuid"], "transfer_uuid": "small"})
        client.send({**part, "transfer_uuid": "small", "content": b"a" * 1000})
        assert client.notice("Message refused")


def test_files_are_sent_to_the_load_button_alone(viewer):
    with connected(viewer.address) as client:
        client.send({**START, "source_component_uuid": client.control("Speed")})
        assert client.notice("Message refused")


def test_what_fails_between_steps_is_told(viewer):
    """A drag, a button: whatever goes wrong within, the loop goes on."""
    for problem in (
        KeyError("k"),
        RuntimeError("r"),
        RecursionError(),
        MemoryError(),
        ValueError("bad v"),
        IndexError(),
    ):

        def fail(problem=problem):
            raise problem

        viewer.session.message = ""
        viewer._ask(fail)
        assert wait(lambda: viewer.session.message)
    viewer.session.message = ""


# ---- uploads ---------------------------------------------------------------------------------------------------------

SECRET = "top-secret-5c1f"


@pytest.fixture
def secret(tmp_path):
    """Files that the server could read."""
    (tmp_path / "plain.txt").write_text(f"{SECRET}: {SECRET}\n{SECRET}\n")
    (tmp_path / "scene.yaml").write_text(
        f"name: x\nbodies:\n  - {{name: {SECRET}, shape: {{kind: sphere, radius: 1}}}}\n"
    )
    (tmp_path / "part.xml").write_text(f'<mujoco><worldbody><body name="{SECRET}"/></worldbody></mujoco>')
    faces = "f 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n"
    (tmp_path / "mesh.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n" + faces)
    return tmp_path


MESH = '<mesh name="m" file="{folder}/mesh.obj"/>'
GEOM = '<worldbody><geom type="mesh" mesh="m"/></worldbody>'
UPLOADS = {
    "include.yaml": "include: {folder}/plain.txt\n",
    "include_scene.yaml": "include: {folder}/scene.yaml\n",
    "include_list.yaml": "include: [{folder}/scene.yaml]\n",
    "include_missing.yaml": "include: {folder}/nowhere.yaml\n",
    "include_endless.yaml": "include: /dev/zero\n",
    "parent.yaml": "include: ../../../etc/hostname\n",
    "mesh.yaml": "bodies:\n  - {{name: b, shape: {{kind: convex, file: {folder}/mesh.obj, mass: 1}}}}\n",
    "motion.yaml": "characters:\n  - {{kind: humanoid, name: h, track: {{motion: {folder}/plain.txt, strength: 9}}}}\n",
    "include.xml": '<mujoco><include file="{folder}/part.xml"/></mujoco>',
    "mesh.xml": "<mujoco><asset>" + MESH + "</asset>" + GEOM + "</mujoco>",
    "hfield.xml": '<mujoco><asset><hfield name="h" file="{folder}/plain.txt" size="1 1 1 1"/></asset></mujoco>',
    "texture.xml": '<mujoco><asset><texture name="t" type="cube" fileup="{folder}/plain.txt"/></asset></mujoco>',
    "model.xml": '<mujoco><asset><model name="o" file="{folder}/part.xml"/></asset></mujoco>',
    "doctype.xml": "<!DOCTYPE mujoco [<!ELEMENT mujoco ANY>]><mujoco/>",
    "mesh.urdf": '<robot name="r"><link name="a"><visual><geometry><mesh filename="{folder}/mesh.obj"/></geometry>'
    "</visual></link></robot>",
    "scheme.urdf": '<robot name="r"><link name="a"><visual><geometry><mesh filename="file://{folder}/mesh.obj"/>'
    "</geometry></visual></link></robot>",
}


@pytest.mark.parametrize("name", UPLOADS)
def test_uploads_cannot_name_files(viewer, secret, name):
    with connected(viewer.address) as client:
        viewer.session.message = ""
        was = viewer.session.model
        client.upload(name, UPLOADS[name].format(folder=secret).encode())
        assert wait(lambda: viewer.session.message)
        client.listen(0.3)
    said = viewer.session.message
    assert viewer.session.model is was
    assert "names a file" in said or name == "doctype.xml", said
    assert "Poise" in said or "poise view" in said, said
    everything = str(client.heard) + said
    assert SECRET not in everything
    assert "/tmp/tmp" not in everything
    assert "does not exist" not in everything
    assert "no such file" not in everything


def test_uploaded_hdf5_cannot_name_files(viewer, secret, tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "linked.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("header", (10,), "u1", external=[(str(secret / "plain.txt"), 0, 10)])
    with connected(viewer.address) as client:
        viewer.session.message = ""
        client.upload("linked.h5", path.read_bytes())
        assert wait(lambda: viewer.session.message)
    assert "another file" in viewer.session.message
    with h5py.File(path, "w") as file:
        file["header"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/header")
    with pytest.raises(poise.SceneError, match="no links to other places"):  # links are not followed
        poise.sim.Recording.load(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("broken.yaml", b"bodies: [\n"),
        ("garbage.npz", b"PK\x03\x04" + b"\xff" * 100),
        ("garbage.h5", b"\x89HDF\r\n\x1a\n" + b"\xff" * 100),
        ("deep.yaml", b"[" * 5000),
        ("deep.xml", b"<mujoco>" + b"<body>" * 20_000),
        ("empty.xml", b""),
        ("../../x.yaml", b"bodies: 3\n"),
        ("nul\x00.yaml", b"bodies: 3\n"),
        ("long" * 500 + ".yaml", b"bodies: 3\n"),
        ("endless" + ".y" * 300, b"bodies: 3\n"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)
def test_broken_uploads_are_told(viewer, name, content):
    with connected(viewer.address) as client:
        viewer.session.message = ""
        client.upload(name, content)
        refused = len(name) > 1000 or "\x00" in name  # by its name alone
        assert client.notice("Message refused") if refused else wait(lambda: viewer.session.message)
    assert "/tmp/" not in viewer.session.message
    assert len(viewer.session.message) < 1000


def test_damaged_recordings_end_nothing(tmp_path):
    scene = ball()
    scene.add_ground()
    scene.build().run(0.6).save(tmp_path / "fall.npz")
    whole = dict(np.load(tmp_path / "fall.npz"))
    damaged = [name for name in whole if name.partition("/")[0] in ("contacts", "energy", "solids", "q", "time")]
    with running() as viewer, connected(viewer.address) as client:
        for name in damaged:
            bad = whole[name][: len(whole[name]) // 2] if whole[name].ndim and len(whole[name]) else whole[name]
            np.savez(tmp_path / "bad.npz", **{**whole, name: bad})
            viewer.session.message = ""
            client.upload("bad.npz", (tmp_path / "bad.npz").read_bytes())
            wait(lambda: viewer.session.message or viewer.session.name == "bad.npz", 5.0)
            viewer._ask(viewer.session.play)
            client.listen(0.4)
        client.upload("fall.npz", (tmp_path / "fall.npz").read_bytes())
        assert wait(lambda: viewer.session.name == "fall.npz")


def test_what_cannot_be_shown_leaves_all_as_it_was(monkeypatch):
    with running() as viewer, connected(viewer.address) as client:
        was, rebuild, calls = viewer.session.model, viewer.front.rebuild, []

        def fail_once():
            calls.append(1)
            if len(calls) == 1:
                raise IndexError("out of range")
            rebuild()

        monkeypatch.setattr(viewer.front, "rebuild", fail_once)
        client.upload("two.yaml", b"bodies:\n  - {name: one, shape: {kind: sphere, radius: 0.1, mass: 1}}\n")
        assert wait(lambda: "IndexError" in viewer.session.message)
        assert viewer.session.model is was
        client.listen(0.5)
        client.set("Step", "Step")
        assert wait(lambda: viewer.session.time > 0.0)


def test_whole_scenes_are_still_loaded(viewer):
    with connected(viewer.address) as client:
        client.upload("two.yaml", b"bodies:\n  - {name: one, shape: {kind: sphere, radius: 0.1, mass: 1}}\n")
        assert wait(lambda: viewer.session.name == "two.yaml")
        client.listen(0.5)  # the panel has been built again
        text = '<mujoco><worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
        client.upload("three.xml", text.encode())
        assert wait(lambda: viewer.session.name == "three.xml")
        text = '<robot name="r"><link name="a"/></robot>'
        client.listen(0.5)
        client.upload("four.urdf", text.encode())
        assert wait(lambda: viewer.session.name == "four.urdf")


# ---- several browsers ------------------------------------------------------------------------------------------------


def test_a_second_browser_and_the_first_are_told():
    with running() as viewer, connected(viewer.address) as first:
        assert first.notice("Another browser is connected", 0.5) == ""
        with connected(viewer.address) as second:
            assert second.notice("Another browser is connected", 2.0) or "Another browser is" in str(second.heard)
            assert "controls the same world" in first.notice("Another browser has connected")
            second.set("Step", "Step")
            assert wait(lambda: viewer.session.time > 0.0)
            first.set("Step", "Reset")
            assert wait(lambda: viewer.session.time == 0.0)
