"""The viewer's server without a browser: when it listens, when it builds, how it ends."""

import socket
import subprocess
import sys

import pytest

import poise
from poise.view.live import Viewer


def ball():
    scene = poise.Scene(name="ball")
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
    return scene


def listens(viewer):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", viewer.port)) == 0


def test_listens_before_the_world_is_built():
    asked = []

    def make():
        asked.append(listens(viewer))
        return ball()

    with Viewer(make, port=0) as viewer:
        assert asked == []
        assert listens(viewer)
        viewer.run(0.2)
        assert asked == [True]
        assert viewer.session.time > 0.0
        viewer.open()  # once is enough
        assert asked == [True]


def test_ends_where_nothing_can_be_built():
    def make():
        raise ValueError("there is no ball")

    with pytest.raises(ValueError, match="there is no ball"), Viewer(make, port=0) as viewer:
        viewer.run(0.1)
    assert not listens(viewer)


def test_plots_come_after_the_first_pictures():
    with Viewer(ball(), port=0) as viewer:
        assert not viewer.panel.plotted
        viewer.run(0.2)
        assert not viewer.panel.plotted
        viewer.run(1.6)
        assert viewer.panel.plotted


def test_plots_come_to_those_who_wait_too():
    with Viewer(ball(), port=0, paused=True) as viewer:
        viewer.run(1.6)
        assert viewer.panel.plotted


def test_the_engine_is_not_imported_before_the_address_is_told():
    heavy = "[name for name in ('numba', 'poise.model') if name in sys.modules]"
    code = f"import sys, poise.view.live.viewer, poise.cli.view; print({heavy})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
