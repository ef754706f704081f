"""A client of the live viewer that speaks viser's protocol without a browser: it can say anything."""

from __future__ import annotations

import time
import uuid
from contextlib import contextmanager
from typing import Any

import msgspec
import viser
import zstandard
from websockets.sync.client import connect

CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": [1.0, 0.0, 0.0, 0.0],
    "position": [3.0, 0.0, 1.0],
    "fov": 1.0,
    "near": 0.1,
    "far": 100.0,
    "image_height": 600,
    "image_width": 800,
    "look_at": [0.0, 0.0, 0.0],
    "up_direction": [0.0, 0.0, 1.0],
}
PROTOCOL = f"viser-v{viser.__version__}"
pack = msgspec.msgpack.encode


def decoded(raw: bytes) -> list[dict[str, Any]]:
    """The messages of one frame."""
    size, packed = (int.from_bytes(raw[k : k + 8], "little") for k in (0, 8))
    text = zstandard.ZstdDecompressor().decompress(raw[16 : 16 + packed], max_output_size=size)
    return list(msgspec.msgpack.decode(text)["messages"])


class Client:
    """A connection, and what was heard on it."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.heard: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any] | bytes | str) -> None:
        self.socket.send(pack(message) if isinstance(message, dict) else message)

    def listen(self, seconds: float, until: Any = None) -> list[dict[str, Any]]:
        """What is heard from now on, for some time or until a message is such as it is waited for."""
        end, start = time.perf_counter() + seconds, len(self.heard)
        while (left := end - time.perf_counter()) > 0.0:
            try:
                found = decoded(self.socket.recv(left))
            except TimeoutError:
                break
            self.heard += found
            if until is not None and any(until(message) for message in found):
                break
        return self.heard[start:]

    def notice(self, title: str, seconds: float = 10.0) -> str:
        """What the next notification of a title says, empty where none comes."""

        def wanted(message: dict[str, Any]) -> bool:
            return message["type"] == "NotificationShowMessage" and message["props"]["title"] == title

        shown = [message["props"]["body"] for message in self.listen(seconds, wanted) if wanted(message)]
        return str(shown[-1]) if shown else ""

    def control(self, label: str) -> str:
        """The identifier of a control of the panel."""
        return next(
            message["uuid"]
            for message in reversed(self.heard)
            if message["type"].startswith("Gui")
            and isinstance(message.get("props"), dict)
            and message["props"].get("label") == label
        )

    def set(self, label: str, value: Any) -> None:
        self.send({"type": "GuiUpdateMessage", "uuid": self.control(label), "updates": {"value": value}})

    def upload(self, name: str, content: bytes) -> None:
        button, transfer = self.control("Load"), str(uuid.uuid4())
        both = {"source_component_uuid": button, "transfer_uuid": transfer}
        about = {"filename": name, "mime_type": "text/plain", "part_count": 1, "size_bytes": len(content)}
        self.send({"type": "FileTransferStartUpload", **both, **about})
        self.send({"type": "FileTransferPart", **both, "part_index": 0, "content": content})


@contextmanager
def connected(address: str, **options: Any):
    """A client that has told where it looks from, and has been told what there is."""
    socket = connect(address.replace("http://", "ws://"), subprotocols=[PROTOCOL], max_size=None, proxy=None, **options)
    with socket:
        client = Client(socket)
        client.send(CAMERA)
        client.listen(20.0, lambda message: message["type"] == "ReplayDoneMessage")
        yield client
