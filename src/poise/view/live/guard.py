"""Access control of the viewer's server: host names, origins of pages, and the token of its address.

viser serves HTTP and websockets at one port and checks neither. `guarded_server` starts it with checks before both:
pages of another origin cannot connect (cross-site websocket hijacking), foreign host names are refused (DNS rebinding),
and requests without the token get nothing. This module imports nothing from the engine.
"""

from __future__ import annotations

import contextlib
import hmac
import io
import ipaddress
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from poise.view.live.messages import Inbox

LOOPBACK = ("localhost", "127.0.0.1", "::1")
MESSAGE_BYTES = 4 * 2**20
"""Longest accepted message; longer ones end their connection. Browsers send files in shorter parts."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every response: the address contains the token, so caching, referrers and framing are disabled."""
_PATH = re.compile(r"[A-Za-z0-9_./-]*")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_STARTING = threading.Lock()


@dataclass(frozen=True)
class Guard:
    """The criteria of requests.

    >>> guard = Guard(frozenset({"localhost"}), token="secret")
    >>> guard.problem("localhost:8080", "http://localhost:8080", "/secret/")
    >>> guard.problem("localhost:8080", "https://evil.example", "/secret/")
    'pages of another origin may not use this server'
    """

    names: frozenset[str]
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    def problem(self, host: str, origin: str | None, path: str, reached: str = "") -> str | None:
        """The reason for refusing a request, or None; `reached` is the address at which it arrived."""
        name = host_name(host)
        if name is None or not (name in self.names or (reached and name == reached)):
            return "this server is not called by that name: name it with --allow where it should be"
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            return "pages of another origin may not use this server"
        if not self.knows(path):
            return "the token is missing: open the whole address that poise view has printed"
        return None

    def knows(self, path: str) -> bool:
        """Whether a path begins with the token, compared in constant time."""
        given = path.partition("?")[0].removeprefix("/").partition("/")[0]
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def rest(self, path: str) -> str | None:
        """The path after the token; None if no file of the page can have it."""
        left = path.partition("?")[0].removeprefix("/").partition("/")[2]
        return f"/{left}" if _PATH.fullmatch(left) and ".." not in left and not left.startswith("/") else None


def host_name(host: str) -> str | None:
    """The name in a `Host` header without its port, in small letters; None where it is none.

    >>> host_name("LocalHost:8080"), host_name("[::1]:80"), host_name("[::1")
    ('localhost', '::1', None)
    """
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    plain = not (parts.path or parts.query or parts.fragment or parts.username is not None)
    return parts.hostname if plain else None


def guard_for(host: str, allow: Sequence[str] = ()) -> Guard:
    """The guard of a server at an address: permits loopback names, that address, and names that users add."""
    if isinstance(allow, str):
        raise ValueError(f"allow is {allow!r}; it must be a list of names")
    for name in allow:
        if not _NAME.fullmatch(name) and not _is_address(name):
            raise ValueError(f"allow has {name!r}; it must be the name of a host, such as robot.lab, without a port")
    bound = () if host in ("0.0.0.0", "::", "") else (host,)
    return Guard(frozenset(name.lower() for name in (*LOOPBACK, *bound, *allow)))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def guarded_server(viser: Any, guard: Guard, inbox: Inbox, **options: Any) -> Any:
    """A `viser.ViserServer` whose requests and messages are checked.

    viser has no hook for this: its websocket serving function is replaced while it starts. If a version of viser serves
    in another way, the server does not start.
    """
    used: list[bool] = []
    with _STARTING, _serving(guard, inbox, used), contextlib.redirect_stdout(io.StringIO()):  # viser prints a greeting
        server = viser.ViserServer(**options)
    if not used:
        server.stop()
        raise ImportError(f"viser {viser.__version__} serves in a way that cannot be guarded: install another version")
    inbox.open(server)
    return server


@contextlib.contextmanager
def _serving(guard: Guard, inbox: Inbox, used: list[bool]) -> Iterator[None]:
    import websockets.asyncio.server as library

    plain = library.serve

    def serve(handler: Any, *arguments: Any, **options: Any) -> Any:
        used.append(True)
        checked = {
            "process_request": _checked(guard, options.get("process_request")),
            "process_response": _with_headers,
            "create_connection": _connection(library.ServerConnection, inbox),
            "max_size": MESSAGE_BYTES,
        }
        return plain(handler, *arguments, **{**options, **checked})

    library.serve = serve  # type: ignore[assignment,misc]
    try:
        yield
    finally:
        library.serve = plain  # type: ignore[misc]


def _checked(guard: Guard, then: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any]:
    """Refuse a request, or pass it to another function with the token removed from its path."""

    def process(connection: Any, request: Any) -> Any:
        hosts, origins = request.headers.get_all("Host"), request.headers.get_all("Origin")
        if len(hosts) != 1 or len(origins) > 1:
            return _with_headers(connection, request, connection.respond(HTTPStatus.BAD_REQUEST, "one Host, please\n"))
        reached = str((connection.local_address or ("",))[0]).lower()
        problem = guard.problem(hosts[0], origins[0] if origins else None, request.path, reached)
        if problem is not None:
            return _with_headers(connection, request, connection.respond(HTTPStatus.FORBIDDEN, f"{problem}\n"))
        path = guard.rest(request.path)
        if path is None:
            return _with_headers(connection, request, connection.respond(HTTPStatus.NOT_FOUND, "NOT FOUND\n"))
        answer = None if then is None else then(connection, replace(request, path=path))
        return None if answer is None else _with_headers(connection, request, answer)

    return process


def _with_headers(_connection: Any, _request: Any, response: Any) -> Any:
    for name, value in _HEADERS.items():
        if name not in response.headers:
            response.headers[name] = value
    return response


def _connection(base: Any, inbox: Inbox) -> Any:
    """A connection that delivers only valid messages; others get an error response."""

    class Connection(base):  # type: ignore[misc]
        async def recv(self, decode: bool | None = None) -> Any:
            while True:
                raw = await super().recv(decode)
                problem = inbox.problem(self, raw)
                if problem is None:
                    return raw
                inbox.refuse(self, problem)

    return Connection
