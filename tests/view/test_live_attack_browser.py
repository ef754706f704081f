"""The live viewer attacked from pages of other origins in a real browser: they are refused, its own page is not."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import viser

import poise
from browser import listen
from poise.view.live import Viewer

pytestmark = pytest.mark.browser

ATTACK = """async ([address, protocol]) => {
    const heard = {opened: false, messages: 0, code: 0};
    await new Promise(done => {
        let socket;
        try { socket = new WebSocket(address, [protocol]); } catch (error) { done(); return; }
        socket.onopen = () => { heard.opened = true; };
        socket.onmessage = () => { heard.messages += 1; socket.close(); done(); };
        socket.onclose = event => { heard.code = event.code; done(); };
        setTimeout(done, 8000);
    });
    return heard;
}"""
READ = """async address => {
    try { return (await (await fetch(address)).text()).length; } catch (error) { return String(error); }
}"""


class Page(BaseHTTPRequestHandler):
    """A page of somebody else."""

    def do_GET(self):
        content = b"<!doctype html><title>elsewhere</title><iframe id=frame></iframe>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def elsewhere():
    """The address of a page on another port, which is another origin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextmanager
def running():
    scene = poise.Scene(name="ball")
    scene.add(poise.sphere(0.1), name="ball", position=(0, 0, 1))
    viewer = Viewer(scene, port=0, paused=True)
    thread = threading.Thread(target=viewer.run, daemon=True)
    thread.start()
    try:
        yield viewer
    finally:
        viewer.end()
        thread.join(20)
        viewer.close()


@pytest.fixture(scope="module")
def viewer():
    with running() as found:
        yield found


@pytest.fixture
def page(the_browser):
    found = the_browser.new_page()
    yield found
    found.close()


PROTOCOL = f"viser-v{viser.__version__}"


@pytest.mark.parametrize("known", ["port", "token"])
def test_a_page_of_another_origin_cannot_connect(page, viewer, elsewhere, known):
    """Neither one that has found the port, nor one that has even got hold of the token."""
    address = f"http://127.0.0.1:{viewer.port}/" if known == "port" else viewer.address
    page.goto(elsewhere)
    heard = page.evaluate(ATTACK, [address.replace("http:", "ws:"), PROTOCOL])
    assert heard == {"opened": False, "messages": 0, "code": 1006}
    assert viewer.server.get_clients() == {}


def test_a_page_of_a_foreign_name_cannot_connect(page, viewer, elsewhere):
    """Browsers look for names under localhost on this computer."""
    page.goto(elsewhere.replace("127.0.0.1", "evil.localhost"))
    heard = page.evaluate(ATTACK, [viewer.address.replace("http:", "ws:"), PROTOCOL])
    assert heard == {"opened": False, "messages": 0, "code": 1006}
    assert viewer.server.get_clients() == {}


def test_a_foreign_name_that_leads_here_shows_nothing(page, viewer):
    """As after DNS rebinding: the page is then of the same origin as the server."""
    answer = page.goto(viewer.address.replace("127.0.0.1", "evil.localhost"))
    assert answer.status == 403
    heard = page.evaluate(ATTACK, [page.url.replace("http:", "ws:"), PROTOCOL])
    assert heard == {"opened": False, "messages": 0, "code": 1006}


def test_a_page_of_another_origin_can_neither_read_nor_frame_it(page, viewer, elsewhere):
    page.goto(elsewhere)
    assert "TypeError" in page.evaluate(READ, viewer.address)
    page.evaluate("address => { document.getElementById('frame').src = address; }", viewer.address)
    page.wait_for_timeout(1500)
    assert viewer.server.get_clients() == {}


def test_the_page_at_the_printed_address_connects(page, viewer):
    heard = listen(page)
    page.goto(viewer.address)
    page.get_by_role("button", name="Play").wait_for(timeout=60_000)
    page.get_by_text("Step", exact=True).last.click()
    for _ in range(200):
        if viewer.session.time > 0.0:
            break
        page.wait_for_timeout(50)
    assert viewer.session.time > 0.0
    assert page.get_by_text("Message refused").count() == 0
    assert all(asked.startswith(viewer.address) for asked in heard.requests)


def test_large_files_are_loaded_from_the_page(page, viewer):
    """Browsers send them in parts that are short enough."""
    page.goto(viewer.address)
    page.get_by_role("button", name="Play").wait_for(timeout=60_000)
    page.get_by_role("tab", name="Files").click()
    scene = b"bodies:\n  - {name: one, shape: {kind: sphere, radius: 0.1, mass: 1}}\n" + b"# padding\n" * 600_000
    with page.expect_file_chooser() as chosen:
        page.get_by_role("button", name="Load").click()
    chosen.value.set_files({"name": "large.yaml", "mimeType": "text/plain", "buffer": scene})
    for _ in range(600):
        if viewer.session.name == "large.yaml":
            break
        page.wait_for_timeout(50)
    assert viewer.session.name == "large.yaml"
    assert page.get_by_text("Message refused").count() == 0


def test_the_page_without_the_token_says_what_is_missing(page, viewer):
    page.goto(f"http://127.0.0.1:{viewer.port}/")
    assert "poise view" in page.inner_text("body")


def test_two_browsers_are_told_of_each_other(the_browser):
    with running() as viewer:
        first, second = the_browser.new_page(), the_browser.new_page()
        try:
            first.goto(viewer.address)
            first.get_by_role("button", name="Play").wait_for(timeout=60_000)
            second.goto(viewer.address)
            second.get_by_text("Another browser is connected").wait_for(timeout=60_000)
            first.get_by_text("Another browser has connected").wait_for(timeout=60_000)
        finally:
            first.close()
            second.close()
