"""A real browser for tests: Chromium without a window, drawing in software. Found by POISE_BROWSER, or on the PATH."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_browser() -> str | None:
    """Path of the browser, None where there is none."""
    if told := os.environ.get("POISE_BROWSER"):
        return told if Path(told).is_file() else None
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass
class Heard:
    """What a page said and asked for."""

    errors: list[str] = field(default_factory=list)
    """Exceptions, and errors and warnings on the console."""
    requests: list[str] = field(default_factory=list)
    """Addresses on a network: not files, not data within the page."""


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Playwright's browser, as long as the context lasts."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def listen(page: Any) -> Heard:
    """Note from now on what a page says and asks for."""
    heard = Heard()
    page.on("pageerror", lambda error: heard.errors.append(str(error)))
    # reading pixels of a canvas stalls the graphics card, which Chromium remarks on
    page.on(
        "console",
        lambda said: (
            heard.errors.append(said.text)
            if said.type in ("error", "warning") and "GPU stall" not in said.text
            else None
        ),
    )
    local = ("file:", "data:", "blob:", "about:")
    page.on("request", lambda asked: None if asked.url.startswith(local) else heard.requests.append(asked.url))
    return heard
