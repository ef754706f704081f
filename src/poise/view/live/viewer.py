"""The viewer: a server for browsers, and the loop that keeps a session going."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import socket
import sys
import threading
import time as clock
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from poise.view.live.guard import guard_for, guarded_server
from poise.view.live.messages import Inbox
from poise.view.live.stage import add_lights, receive
from poise.view.live.trouble import told

# the engine is imported once the server listens: browsers load the page while the world is built
if TYPE_CHECKING:
    from poise.model.scene import Scene
    from poise.sim.recording import Recording
    from poise.view.live.session import Session

_PORTS = 100
"""Ports that are tried, one after another."""
_FRAME, _WORDS, _PLOTS = 1.0 / 40.0, 0.1, 0.4
"""Minimum intervals between updates of the picture, the texts and the plots; s."""

_WAITING = 4096
"""Requests of browsers that may wait to be done."""
_UNPLOTTED = 1.0
"""How long pictures come before plots, which take their time at first; s."""


class Viewer:
    """A server that shows a scene or a recording in browsers.

    `run` serves until it is interrupted; `tick` does one turn of its loop, for loops of your own. The address is bound
    to this computer alone, unless `host` says otherwise, and holds a random token: only those who have all of
    `address` get in. Browsers may call the server by loopback names, by the address that it is bound to or was reached
    at, and by names in `allow`; pages of other origins are refused. Several browsers see and control the same world,
    and are notified of each other. `source` can be a function that returns the scene or recording; `open` or `run` call
    it, and browsers can connect before that. Requires the extra `view`: pip install "poise[view]".
    """

    session: Session

    def __init__(
        self,
        source: Scene | Recording | Session | Callable[[], Scene | Recording | Session],
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        paused: bool = False,
        allow: Sequence[str] = (),
    ) -> None:
        viser = _viser()
        self.asked = port
        self._guard, self._inbox = guard_for(host, allow), Inbox()
        about = {"host": host, "port": free_port(host, port), "label": "Poise", "verbose": False}
        self.server = guarded_server(viser, self._guard, self._inbox, **about)
        self.host, self.port = host, int(self.server.get_port())
        self.server.gui.configure_theme(control_width="medium", show_logo=False, show_share_button=False)
        add_lights(self.server.scene)
        self._todo: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._ended, self._closed = threading.Event(), False
        self._make: Callable[[], Any] | None = source if callable(source) else lambda: source
        self._paused = paused
        self._failed: str | None = None
        if callable(source):
            receive(self.server)
        else:
            self.open()

    def open(self) -> None:
        """Build what is shown, where that is still to be done."""
        make, self._make = self._make, None
        if make is None:
            return
        try:
            self._show(make())
        except BaseException:
            self.close()
            raise

    def _show(self, source: Scene | Recording | Session) -> None:
        from poise.view.live.front import Front
        from poise.view.live.panel import Panel
        from poise.view.live.session import Session

        self.session = source if isinstance(source, Session) else Session(source)
        self._place_camera()
        with self.server.atomic():  # else browsers begin with parts of it
            self.front = Front(self.server, self.session, self._ask)
            self.panel = Panel(self.server, self.session, self.front, self._ask)
        self._inbox.controls = self.panel
        self._last = self._worded = clock.perf_counter()
        self._plotted = self._last + _UNPLOTTED
        if not self._paused:
            self.session.play()

    @property
    def address(self) -> str:
        """For browsers, with the token without which nothing is shown."""
        host = "localhost" if self.host in ("0.0.0.0", "::", "") else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/{self._guard.token}/"

    def _place_camera(self) -> None:
        from poise.dynamics.state_queries import bodies
        from poise.view.live.front import first_camera, followed_body

        session = self.session
        camera, followed = first_camera(session), followed_body(session)
        place = bodies(session.model, session.q).position
        shift = place[followed] * (1.0, 1.0, 0.0) if followed is not None else 0.0
        start = self.server.initial_camera
        start.position = np.asarray(camera.position) - shift
        start.look_at = np.asarray(camera.target) - shift
        start.up, start.fov = camera.up, camera.field_of_view
        start.near, start.far = 0.02, 200.0

    # ---- the loop ----------------------------------------------------------------------------------------------------

    def _ask(self, do: Callable[[], None]) -> None:
        """Let something be done between two steps; nothing where too much waits to be done."""
        if self._todo.qsize() < _WAITING:
            self._todo.put(do)

    def _do_asked(self) -> None:
        """Run the pending requests. Errors are shown to the user, and the loop continues."""
        for _ in range(self._todo.qsize()):
            try:
                self._todo.get_nowait()()
            except queue.Empty:
                break
            except Exception as problem:
                self.session.message = told(problem)

    def tick(self) -> None:
        """Run pending requests, advance in real time, and update the view."""
        self._do_asked()
        try:
            self._go_on()
        except Exception as problem:  # a recording may be damaged in frames that were not shown before
            if self.session.message != self._failed:
                self._failed = told(problem)
            self.session.playing, self.session.message = False, self._failed

    def _go_on(self) -> None:
        """Advance in real time, and update the view."""
        now = clock.perf_counter()
        seconds, self._last = min(now - self._last, 0.25), now
        was = self.session.playing
        self.session.advance(seconds, budget=0.8 * _FRAME)
        moved = self.front.draw(seconds)
        now = clock.perf_counter()
        stopped = was != self.session.playing
        due = now - self._plotted > _PLOTS and (moved or not self.panel.plotted)
        if stopped or due or (moved and now - self._worded > _WORDS):
            self.panel.update(plots=stopped or due)
            self._worded = now
            self._plotted = now if stopped or due else self._plotted

    def run(self, seconds: float | None = None) -> None:
        """Serve, until interrupted (Ctrl-C), or for some time by the clock."""
        self.open()
        end = None if seconds is None else clock.perf_counter() + seconds
        with contextlib.suppress(KeyboardInterrupt):
            while not self._ended.is_set() and (end is None or clock.perf_counter() < end):
                start = clock.perf_counter()
                self.tick()
                clock.sleep(max(0.002, _FRAME - (clock.perf_counter() - start)))

    def end(self) -> None:
        """Let `run` come to its end, from another thread."""
        self._ended.set()

    def close(self) -> None:
        """End the server."""
        self.end()
        if self._closed:
            return
        self._closed = True
        with contextlib.redirect_stdout(io.StringIO()):
            self.server.stop()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def free_port(host: str, port: int) -> int:
    """The first port from `port` on that can be listened at; 0 lets the system choose.

    >>> free_port("127.0.0.1", 0)
    0
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ValueError(f"port is {port!r}; it must be a whole number from 0 to 65535")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except OSError as problem:
        raise ValueError(f"host is {host!r}, which cannot be found ({problem}); 127.0.0.1 is this computer") from None
    if port == 0:
        return 0
    why = ""
    for number in range(port, min(port + _PORTS, 65536)):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, number))
                return number
            except OSError as found:
                why = str(found)
    raise ValueError(f"no port from {port} on can be listened at on {host} ({why})")


def has_browser() -> bool:
    """Whether a window of a browser can be expected to open here."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _viser() -> Any:
    try:
        import viser
    except ImportError:
        raise ImportError('the viewer needs viser: pip install "poise[view]"') from None
    return viser
