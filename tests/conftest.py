"""Settings for all tests: random examples are the same in every run, nobody is timed; some tests need a browser."""

import os

import pytest
from hypothesis import settings

from browser import chromium, find_browser

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_report_header():
    """Say which browser tests use, or that those who need one are left out."""
    return f"browser: {find_browser() or 'none found (POISE_BROWSER, PATH): tests marked `browser` are left out'}"


def pytest_collection_modifyitems(config, items):
    """Leave out what needs a browser where there is none."""
    if find_browser() is None:
        out = [item for item in items if item.get_closest_marker("browser")]
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if not item.get_closest_marker("browser")]


@pytest.fixture(scope="module")
def the_browser():
    """A browser for the tests of a module; while it runs, the thread has a running event loop."""
    with chromium() as browser:
        yield browser
