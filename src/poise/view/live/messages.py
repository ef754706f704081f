"""Validation of messages from browsers: permitted kinds, fields and values. Other messages get an error response."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakKeyDictionary

UPLOAD_BYTES = 200 * 2**20
"""Maximum total size of the files that one browser is sending; bytes."""
_PARTS = 4096
_FAR = 1e6
"""Greatest distance from the origin; m."""
_LONGEST = 1000
"""Maximum length of names and identifiers."""

Rule = Callable[[Any], bool]


class Controls(Protocol):
    """The part of the panel that validation needs."""

    def value_problem(self, control: str, value: Any) -> str | None:
        """The error of a value for a control, or None."""

    def takes_files(self, control: str) -> bool:
        """Whether files are loaded with a control."""


def is_number(value: Any, low: float = -_FAR, high: float = _FAR) -> bool:
    """Whether a value is a finite number within bounds; true and false are none.

    >>> is_number(1), is_number(True), is_number(float("nan")), is_number(1e300), is_number("1")
    (True, False, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def is_whole(value: Any, low: int, high: int) -> bool:
    """Whether a value is a whole number within bounds; 3.0 is one."""
    return is_number(value, low, high) and math.floor(value) == value


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST and "\x00" not in value


def _vector(count: int) -> Rule:
    return lambda value: isinstance(value, list) and len(value) == count and all(is_number(part) for part in value)


def _whole(low: int, high: int) -> Rule:
    return lambda value: is_whole(value, low, high)


def _one_of(*words: str) -> Rule:
    return lambda value: isinstance(value, str) and value in words


def _maybe(rule: Rule) -> Rule:
    return lambda value: value is None or rule(value)


def _updates(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"value"}


_TRANSFER: dict[str, Rule] = {"source_component_uuid": _text, "transfer_uuid": _text}
_POINTER: dict[str, Rule] = {"name": _text, "instance_index": _maybe(_whole(0, 2**31)), "modifier": _maybe(_text)}
MESSAGES: dict[str, dict[str, Rule]] = {
    "ViewerCameraMessage": {
        "wxyz": _vector(4),
        "position": _vector(3),
        "look_at": _vector(3),
        "up_direction": _vector(3),
        "fov": is_number,
        "near": is_number,
        "far": is_number,
        "image_height": _whole(0, 100_000),
        "image_width": _whole(0, 100_000),
    },
    "GuiUpdateMessage": {"uuid": _text, "updates": _updates},
    "CommandTriggerMessage": {"uuid": _text},
    "SceneNodeClickMessage": {
        **_POINTER,
        "ray_origin": _vector(3),
        "ray_direction": _vector(3),
        "screen_pos": _vector(2),
    },
    "SceneNodeDragMessage": {
        **_POINTER,
        "phase": _one_of("start", "update", "end"),
        "button": _one_of("left", "middle", "right"),
        "start_position": _vector(3),
        "start_screen_pos": _vector(2),
        "end_position": _vector(3),
        "end_screen_pos": _vector(2),
    },
    "FileTransferStartUpload": {
        **_TRANSFER,
        "filename": _text,
        "mime_type": _text,
        "part_count": _whole(0, _PARTS),
        "size_bytes": _whole(0, UPLOAD_BYTES),
    },
    "FileTransferPart": {
        **_TRANSFER,
        "part_index": _whole(0, _PARTS - 1),
        "content": lambda value: isinstance(value, bytes),
    },
    "FileTransferPartAck": {
        "source_component_uuid": _maybe(_text),
        "transfer_uuid": _text,
        "transferred_bytes": _whole(0, 2**53),
        "total_bytes": _whole(0, 2**53),
    },
}
"""Fields of each permitted message. `ShareUrlRequest`, which opens the viewer to the internet, is not permitted."""
_OPTIONAL: dict[str, Rule] = {"owner": _text}


def form_problem(message: Any) -> str | None:
    """The error of a message by itself, or None.

    >>> form_problem({"type": "CommandTriggerMessage", "uuid": "a"})
    >>> form_problem({"type": "CommandTriggerMessage", "uuid": 1})
    'the field uuid of CommandTriggerMessage has a value that it cannot have'
    """
    kind = message.get("type") if isinstance(message, dict) else None
    rules = MESSAGES.get(kind) if isinstance(kind, str) else None
    if rules is None:
        return "it is of no kind that the viewer knows"
    for name, rule in rules.items():
        if name not in message:
            return f"the field {name} of {kind} is missing"
        if not rule(message[name]):
            return f"the field {name} of {kind} has a value that it cannot have"
    for name in message.keys() - rules.keys() - {"type"}:
        if name not in _OPTIONAL or not _OPTIONAL[name](message[name]):
            return f"{kind} has a field that it cannot have"
    return None


class Inbox:
    """Validates messages of connections, sends error responses, and notifies browsers of each other."""

    def __init__(self) -> None:
        self.controls: Controls | None = None
        self._server: Any = None
        self._uploads: WeakKeyDictionary[Any, dict[str, list[int]]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def open(self, server: Any) -> None:
        """Send responses through this server from now on."""
        self._server = server
        server.on_client_connect(self._welcome)

    def problem(self, connection: Any, raw: Any) -> str | None:
        """The error of a message, or None."""
        import msgspec

        if not isinstance(raw, bytes):
            return "it is text, and not MessagePack"
        try:
            message = msgspec.msgpack.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, TypeError):
            return "it is no sound MessagePack"
        problem = form_problem(message)
        if problem is None and message["type"] == "GuiUpdateMessage":
            problem = self._value_problem(message["uuid"], message["updates"]["value"])
        if problem is None and message["type"].startswith("FileTransfer"):
            problem = self._transfer_problem(connection, message)
        return problem

    def _value_problem(self, control: str, value: Any) -> str | None:
        return "there are no controls yet" if self.controls is None else self.controls.value_problem(control, value)

    def _transfer_problem(self, connection: Any, message: dict[str, Any]) -> str | None:
        """Track file uploads: announced and received bytes."""
        kind, name = message["type"], message["transfer_uuid"]
        if kind == "FileTransferPartAck":
            return None
        if self.controls is None or not self.controls.takes_files(message["source_component_uuid"]):
            return "files are not sent to this control"
        with self._lock:
            open_ones = self._uploads.setdefault(connection, {})
            if kind == "FileTransferStartUpload":
                if (
                    name in open_ones
                    or sum(left for left, _ in open_ones.values()) + message["size_bytes"] > UPLOAD_BYTES
                ):
                    return f"files of more than {UPLOAD_BYTES // 2**20} MiB together cannot be sent"
                if message["part_count"]:
                    open_ones[name] = [int(message["size_bytes"]), int(message["part_count"])]
                return None
            if name not in open_ones:
                return "it is part of no file that is being sent"
            left = open_ones[name]
            left[0] -= len(message["content"])
            left[1] -= 1
            if left[0] < 0 or left[1] < 0:
                return "the file is longer than it was said to be"
            if left[1] == 0:
                del open_ones[name]
        return None

    def refuse(self, connection: Any, problem: str) -> None:
        """Send the error of its message to a browser."""
        self._tell(connection, "Message refused", problem)

    def _tell(self, connection: Any, title: str, body: str) -> None:
        from viser import _messages as kinds

        server = None if self._server is None else self._server._websock_server
        if server is None:
            return
        number = next((n for n, live in server._live_connections.items() if live is connection), None)
        state = server._client_state_from_id.get(number)
        if state is not None:
            look = {"loading": False, "with_close_button": True, "auto_close_seconds": 10.0, "color": "red"}
            props = kinds.NotificationProps(title=title, body=body, **look)
            state.message_buffer.push(kinds.NotificationShowMessage(f"{title} {number}", props))

    async def _welcome(self, client: Any) -> None:
        """Notify a browser and the others of each other: all of them show and control the same world."""
        others = [other for other in self._server.get_clients().values() if other.client_id != client.client_id]
        look = {"auto_close_seconds": 10.0, "color": "yellow"}
        if others:
            body = "It sees and controls the same world as you do."
            client.add_notification("Another browser is connected", body, **look)
        for other in others:
            body = "It sees and controls the same world as you do."
            other.add_notification("Another browser has connected", body, **look)
