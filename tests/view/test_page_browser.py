"""Pages in a real browser: they play, stop, turn and show what they are told to, from a file, without a network."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import poise
from browser import listen
from collision.ray_reference import round_mesh
from poise.motion import keyframes
from poise.motion.rotations import quat_exp
from poise.sim import Recording
from poise.view.page import save_page

pytestmark = pytest.mark.browser
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def arm() -> Recording:
    """Two links that swing, over a ground on which a ball lies."""
    scene = poise.Scene(name="arm")
    scene.add_ground()
    upper = scene.hinge(
        None, poise.capsule(0.06, 0.5, color=(0.9, 0.2, 0.2, 1)), axis="y", name="upper", position=(0, 0, 1.2)
    )
    scene.hinge(
        upper, poise.capsule(0.05, 0.4, color=(0.2, 0.4, 0.9, 1)), axis="y", name="lower", position=(0, 0, -0.5)
    )
    scene.add(poise.sphere(0.15, color=(0.9, 0.7, 0.2, 1)), name="ball", position=(0.2, 0.4, 0.15))
    world = scene.build(dt=1 / 120)
    world.q[:2] = 1.2, 0.4
    return world.run(2.0, signals={HOSTILE: lambda world: world.q[0]})


GHOST = keyframes({0.0: {"upper": 0.0}, 2.0: {"upper": 2.0}}, moves="linear")


@pytest.fixture(scope="module")
def address(arm, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("page") / "arm.html"
    arm.save(path, title=f"An arm {HOSTILE}", about=HOSTILE, ghost=GHOST)
    return path.as_uri()


@pytest.fixture
def opened(the_browser):
    """Opens addresses; at the end nobody has complained or asked for anything."""
    pages = []

    def open_page(address: str, size=(500, 480), script: str = "", **options):
        page = the_browser.new_page(viewport={"width": size[0], "height": size[1]}, **options)
        pages.append((page, listen(page)))
        if script:
            page.add_init_script(script)
        page.goto(address)
        page.wait_for_selector("html[data-state]")
        page.evaluate(
            "window.poise && (poise.renderer.quality = 2, poise.touch())"
        )  # as coarse as it may get, from now on
        return page

    yield open_page
    for page, heard in pages:
        page.close()
        assert heard.errors == []
        assert heard.requests == []


def wait(page, expression: str) -> None:
    """Until something holds. Playwright's own way needs `eval`, which the page's policy forbids."""
    for _ in range(300):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(30)
    raise AssertionError(f"never came to be: {expression}")


def still(page) -> None:
    """Wait until nothing is left to draw."""
    page.evaluate("poise.play(false)")
    wait(page, "!poise.waiting")


def pixels(page) -> np.ndarray:
    shot = page.locator("#view").screenshot()
    return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)


def changed(before: np.ndarray, after: np.ndarray) -> int:
    """Pixels that differ visibly."""
    return int((np.abs(before - after).max(axis=2) > 12).sum())


def test_it_plays_and_the_space_bar_stops_it(opened, address):
    page = opened(address)
    assert page.evaluate("document.documentElement.dataset.state") == "ready"
    assert page.title() == f"An arm {HOSTILE}"
    assert page.evaluate("poise.playing")
    before = pixels(page)
    wait(page, "poise.time > 0.4")
    assert changed(before, pixels(page)) > 500
    page.keyboard.press("Space")
    assert not page.evaluate("poise.playing")
    assert page.get_attribute("#play", "aria-label") == "Play"
    wait(page, "!poise.waiting")
    time, before = page.evaluate("poise.time"), pixels(page)
    page.wait_for_timeout(300)
    assert page.evaluate("poise.time") == time
    assert changed(before, pixels(page)) == 0
    page.click("#play")
    page.keyboard.press("Space")  # goes to the page, not to the button that was clicked
    assert not page.evaluate("poise.playing")


def test_poses_are_python_s_and_turn_evenly_between_frames(opened, arm, address):
    page = opened(address)
    frames = [0, 30, 77]
    times = page.evaluate("[0, 30, 77].map(k => poise.stage.motion.times[k])")
    told = page.evaluate("[0, 30, 77].map(k => poise.stage.motion.poses(poise.stage.motion.times[k]))")
    origin = np.array(page.evaluate("poise.data.origin"))
    for frame, time, poses in zip(frames, times, told, strict=True):
        place = poise.dynamics.bodies(arm.model, arm.q[arm.at(time)])
        for link, pose in enumerate(poses):
            body = int(arm.model.link_body[link])
            assert np.abs(np.array(pose["position"]) + origin - place.position[body]).max() < 1e-4, (frame, link)
    ghost = page.evaluate("[0.25, 0.5, 1.0].map(t => poise.stage.ghost.pose(t, 0).turn)")
    for time, turn in zip((0.25, 0.5, 1.0), ghost, strict=True):
        assert abs(np.dot(turn, quat_exp((0, time, 0)))) > 1 - 1e-6


def test_dragging_turns_the_view_and_the_wheel_brings_it_closer(opened, address):
    page = opened(address)
    still(page)
    before = pixels(page)
    page.mouse.move(300, 200)
    page.mouse.down()
    page.mouse.move(390, 220, steps=4)
    page.mouse.up()
    wait(page, "!poise.waiting")
    after = pixels(page)
    assert changed(before, after) > 3000
    distance = page.evaluate("poise.camera.distance")
    page.mouse.wheel(0, -300)
    page.wait_for_timeout(100)
    wait(page, "!poise.waiting")
    assert page.evaluate("poise.camera.distance") < 0.95 * distance
    target = page.evaluate("poise.camera.shift")
    page.mouse.move(300, 200)
    page.mouse.down(button="right")
    page.mouse.move(350, 200, steps=3)
    page.mouse.up(button="right")
    wait(page, "!poise.waiting")
    assert np.linalg.norm(np.subtract(page.evaluate("poise.camera.shift"), target)) > 0.02
    page.keyboard.press("r")
    page.wait_for_timeout(100)
    wait(page, "!poise.waiting")
    inside = slice(8, -8), slice(8, -8)  # keys make the ring of what has the focus appear
    assert changed(before[inside], pixels(page)[inside]) < 50


def test_fingers_turn_and_pinch(opened, address):
    page = opened(address, has_touch=True)
    still(page)
    yaw, distance = page.evaluate("[poise.camera.yaw, poise.camera.distance]")
    touch = """([[id, type, x, y]]) => document.getElementById("view").dispatchEvent(new PointerEvent(type,
        {pointerId: id, pointerType: "touch", clientX: x, clientY: y, buttons: 1, bubbles: true}))"""
    page.evaluate("HTMLCanvasElement.prototype.setPointerCapture = () => {}")
    for event in ([7, "pointerdown", 300, 200], [7, "pointermove", 360, 200]):
        page.evaluate(touch, [event])
    wait(page, "!poise.waiting")
    assert page.evaluate("poise.camera.yaw") < yaw - 0.2
    for event in ([8, "pointerdown", 300, 260], [8, "pointermove", 300, 360]):
        page.evaluate(touch, [event])
    wait(page, "!poise.waiting")
    assert page.evaluate("poise.camera.distance") < 0.8 * distance


def test_scrubbing_and_steps_go_to_their_times(opened, address):
    page = opened(address, size=(640, 700))
    still(page)
    box = page.locator("#scrub").bounding_box()
    page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    assert page.evaluate("poise.time") == pytest.approx(1.0, abs=0.03)
    wait(page, "document.getElementById('time').textContent.startsWith(poise.time.toFixed(2))")
    frame = page.evaluate("poise.stage.motion.nearest(poise.time)")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("poise.stage.motion.nearest(poise.time)") == frame + 1
    page.keyboard.press("End")
    assert page.evaluate("poise.time") == pytest.approx(2.0)
    page.keyboard.press("ArrowRight")
    assert page.evaluate("poise.time") == pytest.approx(2.0)
    page.keyboard.press("Home")
    assert page.evaluate("poise.time") == 0.0
    chart = page.locator("#chart").bounding_box()
    page.mouse.click(chart["x"] + 52 + 0.25 * (chart["width"] - 62), chart["y"] + 40)
    assert page.evaluate("poise.time") == pytest.approx(0.5, abs=0.03)


def test_the_camera_goes_along(opened, arm, tmp_path):
    """What is followed stays where it is in the picture, however far one goes in time."""
    q = arm.q.copy()
    q[:, arm.model.q_slice("ball")] += np.linspace(0, 50, len(q))[:, None] * (1, 0, 0, 0, 0, 0, 0)
    moved = Recording(arm.time, q, arm.v, arm.model)
    page = opened(save_page(moved, tmp_path / "far.html", follow="ball", still=False).as_uri())
    still(page)
    page.evaluate("poise.seek(0)")
    wait(page, "!poise.waiting")
    for time in (2.0, 1.0):
        page.evaluate(f"poise.seek({time})")
        gone = page.evaluate("poise.camera.anchor[0]")
        assert gone == pytest.approx(25.0 * time, abs=0.3)


def test_it_ends_or_begins_anew(opened, address):
    page = opened(address)
    page.select_option("#speed", "4")
    page.evaluate("poise.seek(1.9)")
    wait(page, "poise.playing && poise.time < 1.5")
    page.click("#play")  # clicking takes time: were it playing, it might end before it is put to 1.9
    assert not page.evaluate("poise.playing")
    page.click("#loop")
    page.evaluate("poise.seek(1.9)")
    page.click("#play")
    wait(page, "!poise.playing")
    assert page.evaluate("poise.time") == pytest.approx(2.0)
    page.click("#play")
    assert page.evaluate("poise.playing && poise.time < 1")


def test_everything_that_can_be_shown_and_hidden_changes_the_picture(opened, address):
    page = opened(address)
    still(page)
    page.evaluate("poise.seek(1.5)")
    wait(page, "!poise.waiting")

    def changes(action) -> int:
        before = pixels(page)
        action()
        page.wait_for_timeout(60)
        wait(page, "!poise.waiting")
        return changed(before, pixels(page))

    assert changes(lambda: page.select_option("#ghost", "off")) > 500
    assert changes(lambda: page.select_option("#ghost", "beside")) > 500
    assert changes(lambda: page.keyboard.press("g")) > 500
    assert changes(lambda: page.click("#skeleton")) > 300
    assert page.get_attribute("#skeleton", "aria-pressed") == "true"
    assert changes(lambda: page.keyboard.press("c")) > 30
    page.click("#trail-part summary")
    assert changes(lambda: page.get_by_role("checkbox", name="lower").check()) > 100
    page.click("#view", position={"x": 20, "y": 200})
    assert changes(lambda: page.click("#theme")) > 60_000
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 21, 26)"


def test_follow_and_charts(opened, address):
    page = opened(address, size=(700, 700))
    still(page)
    assert page.locator("#legend li").all_inner_texts()[0].startswith("mean")
    page.select_option("#chart-choice", label="Energy")
    wait(page, "document.querySelector('#legend').textContent.includes('kinetic')")
    page.select_option("#chart-choice", label=HOSTILE)
    wait(page, "document.querySelector('#legend span').textContent.includes('onerror')")
    page.select_option("#follow", label="ball")
    wait(page, "!poise.waiting")
    height = page.locator("#view").bounding_box()["height"]
    page.click("#plots")
    assert page.locator("#view").bounding_box()["height"] > height + 50


COLORS = {
    "sphere": (0.9, 0.1, 0.1),
    "capsule": (0.1, 0.8, 0.1),
    "box": (0.1, 0.2, 0.9),
    "cylinder": (0.85, 0.8, 0.05),
    "ellipsoid": (0.8, 0.1, 0.8),
    "hull": (0.1, 0.75, 0.8),
    "field": (0.95, 0.5, 0.05),
    "mesh": (0.5, 0.1, 0.95),
}


def hue(rgb: np.ndarray) -> np.ndarray:
    """In turns, of saturated colours; −1 of others."""
    top, low = rgb.max(axis=-1), rgb.min(axis=-1)
    span = np.maximum(top - low, 1e-9)
    r, g, b = (rgb[..., k] for k in range(3))
    sector = np.where(top == r, (g - b) / span % 6, np.where(top == g, (b - r) / span + 2, (r - g) / span + 4))
    return np.where((top - low) > 0.45 * top, sector / 6, -1.0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_kind_of_shape_is_seen(opened, tmp_path, theme):
    scene = poise.Scene(name="shapes")
    scene.add_ground()
    vertices, faces = round_mesh(1)
    x, y = np.meshgrid(np.linspace(0, 6, 9), np.linspace(0, 5, 7))
    corners = [(-0.3, -0.3, -0.3), (0.4, -0.1, -0.3), (0, 0.4, -0.2), (0, 0, 0.4), (0.3, 0.3, 0.2)]
    shapes = {
        "sphere": poise.sphere(0.35),
        "capsule": poise.capsule(0.2, 0.5),
        "box": poise.box(0.5, 0.5, 0.5),
        "cylinder": poise.cylinder(0.3, 0.5),
        "ellipsoid": poise.ellipsoid(0.5, 0.7, 0.4),
        "hull": poise.convex(corners),
        "field": poise.height_field(0.2 + 0.2 * np.sin(x) * np.cos(y), 0.9, 0.9),
        "mesh": poise.triangle_mesh(0.4 * vertices, faces),
    }
    for k, (name, shape) in enumerate(shapes.items()):
        shape.color = (*COLORS[name], 1.0)
        scene.add(shape, name=name, position=(k % 4 * 1.1 - 1.6, k // 4 * 1.3 - 0.6, 0.5), fixed=True)
    model = scene.compile()
    recording = Recording(np.zeros(1), model.q_rest[None], np.zeros((1, model.nv)), model)
    page = opened(save_page(recording, tmp_path / "shapes.html").as_uri(), color_scheme=theme)
    wait(page, "!poise.waiting")
    assert page.locator("#scrub").is_disabled()
    seen = hue(pixels(page) / 255.0)
    for name, color in COLORS.items():
        wanted = float(hue(np.array(color)))
        apart = np.abs((seen - wanted + 0.5) % 1.0 - 0.5)
        assert int(((apart < 0.03) & (seen >= 0.0)).sum()) > 250, name


def test_shadows_fall_on_the_floor(opened, tmp_path):
    scene = poise.Scene()
    scene.add_ground()
    scene.add(poise.box(0.8, 0.8, 0.1), name="plate", position=(0, 0, 1.0), fixed=True)
    model = scene.compile()
    recording = Recording(np.zeros(1), model.q_rest[None], np.zeros((1, model.nv)), model)
    page = opened(save_page(recording, tmp_path / "plate.html", still=False).as_uri())
    page.evaluate("poise.camera.goal.pitch = 0.6; poise.touch()")
    wait(page, "!poise.waiting")
    before = pixels(page)
    page.evaluate("""() => {
        const { renderer } = poise, paint = renderer.paintShadows;
        renderer.paintShadows = (casters, light) => paint.call(renderer, [], light);
        poise.touch();
    }""")
    wait(page, "!poise.waiting")
    after = pixels(page)
    assert changed(before, after) > 1000
    assert after.sum() > before.sum(), "without shadows it is brighter"


def test_no_webgl_is_told_with_a_picture(opened, address):
    page = opened(address, script="HTMLCanvasElement.prototype.getContext = () => null")
    assert page.evaluate("document.documentElement.dataset.state") == "still"
    assert "cannot show the recording in 3-D: WebGL 2" in page.inner_text("#reason")
    assert page.evaluate("document.getElementById('still').naturalWidth") == 640
    assert page.locator("#still").is_visible()
    assert not page.locator("#controls").is_visible()


def test_old_browsers_are_told(opened, address):
    page = opened(address, script="delete window.DecompressionStream")
    assert "too old" in page.inner_text("#reason")
    assert page.locator("#still").is_visible()


def test_those_who_want_no_motion_are_not_moved(opened, address):
    page = opened(address, reduced_motion="reduce")
    assert not page.evaluate("poise.playing")


@pytest.mark.parametrize("size", [(320, 480), (390, 760), (1400, 900), (700, 380)])
def test_controls_are_in_reach_at_every_size(opened, address, size):
    page = opened(address, size=size)
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    for control in page.locator("button:visible, select:visible, #scrub").all():
        box = control.bounding_box()
        assert box["x"] >= 0, control
        assert box["x"] + box["width"] <= size[0] + 1, control
    for name in ("#play", "#scrub", "#info"):
        box = page.locator(name).bounding_box()
        assert 0 <= box["y"] <= size[1] - box["height"], name
    assert page.locator("#view").bounding_box()["height"] >= 120


def test_it_can_be_used_by_keys_alone(opened, address):
    page = opened(address)
    still(page)
    reached = set()
    for _ in range(25):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    wanted = {
        "view",
        "play",
        "back",
        "on",
        "scrub",
        "loop",
        "speed",
        "contacts",
        "skeleton",
        "ghost",
        "follow",
        "plots",
    }
    assert wanted <= reached
    yaw = page.evaluate("poise.camera.goal.yaw")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Shift+ArrowLeft")
    assert page.evaluate("poise.camera.goal.yaw") < yaw, "the eye goes to the left"
    page.keyboard.press("?")
    assert page.locator("#facts").is_visible()
    assert "Versions" in page.inner_text("#facts")
    page.keyboard.press("Escape")
    assert not page.locator("#facts").is_visible()


def test_what_is_drawn_slowly_is_drawn_less_finely(opened, address):
    page = opened(address)
    still(page)
    page.evaluate("poise.renderer.quality = 0; for (let k = 0; k < 5; k++) poise.mind(0.01)")
    assert page.evaluate("poise.renderer.quality") == 0
    page.evaluate("for (let k = 0; k < 30; k++) poise.mind(k % 5 ? 0.2 : 0.01)")
    assert page.evaluate("poise.renderer.quality") == 2
    page.evaluate("poise.touch()")
    wait(page, "!poise.waiting")
    assert page.evaluate("poise.canvas.width") == round(0.7 * page.evaluate("poise.canvas.clientWidth"))


def test_a_lost_card_is_found_again(opened, address):
    page = opened(address)
    still(page)
    before = pixels(page)
    page.evaluate("""() => {
        const card = poise.renderer.gl.getExtension("WEBGL_lose_context");
        card.loseContext();
        setTimeout(() => card.restoreContext(), 100);
    }""")
    wait(page, "poise.found")
    wait(page, "!poise.waiting")
    assert changed(before, pixels(page)) < 50


def test_notebooks_show_the_page_in_a_frame(opened, arm, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(f'<html data-state="x"><body>{arm._repr_html_()}</body></html>', encoding="utf-8")
    page = opened(path.as_uri(), size=(800, 600))
    frame = page.frames[1]
    frame.wait_for_selector('html[data-state="ready"]')
    wait(frame, "poise.time > 0.1")
