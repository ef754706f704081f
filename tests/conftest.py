"""Settings for all tests: random examples are the same in every run, nobody is timed; some tests need a browser."""

import os
import signal

import pytest
from hypothesis import settings

from browser import chromium, find_browser
from gltf import find_validator
from seeds import VARIABLE, move_examples, move_seeds, offset

# a shell starts background jobs with SIGINT ignored; tests of Ctrl-C need Python's own handler
signal.signal(signal.SIGINT, signal.default_int_handler)
move_seeds()
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_report_header():
    """Say which browser and validator tests use, or that those who need one are left out."""
    found = find_validator()
    checker = f"glTF validator: {found[1]}" if found else "glTF validator: none found (.ci/validator.sh): left out"
    browser = f"browser: {find_browser() or 'none found (POISE_BROWSER, PATH): tests marked `browser` are left out'}"
    return [browser, checker, *([f"seeds: moved by {offset()} ({VARIABLE})"] if offset() else [])]


def pytest_collection_modifyitems(config, items):
    """Move seeds; leave out what needs a browser where there is none, and likewise what needs the validator of glTF."""
    move_examples(items)
    for marker, found in (("browser", find_browser()), ("validator", find_validator())):
        out = [item for item in items if found is None and item.get_closest_marker(marker)]
        if out:
            config.hook.pytest_deselected(items=out)
            items[:] = [item for item in items if not item.get_closest_marker(marker)]


@pytest.fixture(scope="module")
def the_browser():
    """A browser for the tests of a module; while it runs, the thread has a running event loop."""
    with chromium() as browser:
        yield browser
