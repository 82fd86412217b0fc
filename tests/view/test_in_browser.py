"""An exported page in a real browser, opened from disk with the network off: it plays, and shows the run's numbers."""

import io
import re
from itertools import pairwise

import jax
import numpy as np
import pytest
from browser import looks, opened_browser
from made import meeting, run_of

import pathlines as pl
from pathlines.view.export import page
from pathlines.view.frames import frames

PLAYER = "const player = globalThis.player, root = document.getElementById('player').shadowRoot;"
ABOUT = 5e-4
"""Four digits are shown."""


@pytest.fixture(scope="module")
def run():
    times = np.append(0.0, np.geomspace(0.05, 40, 40))
    start = pl.Sphere(3).uniform(jax.random.key(0), n=40)
    return pl.flow(pl.SelfAttention(beta=4.0), start, times=times, record=["tokens", "energy", "cluster_count"])


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with opened_browser(tmp_path_factory.mktemp("browser")) as driver:
        yield driver


@pytest.fixture
def talk(browser, run, tmp_path):
    """The page of the run, open; what it complains of is a failure."""
    looks(browser)
    browser.get(run.export(tmp_path / "talk.html", command="pathlines run sa", python="pl.flow(…)").as_uri())
    browser.execute_script("globalThis.frame = () => new Promise((done) => requestAnimationFrame(() => done()));")
    yield browser
    assert [entry["message"] for entry in browser.get_log("browser")] == []


def ask(driver, code, *arguments):
    return driver.execute_script(f"{PLAYER} {code}", *arguments)


def shown(driver):
    """(time, values of the curves) as a reader sees them."""
    words = ask(driver, "return [root.querySelector('.time').textContent, ...[...root.querySelectorAll('.value')]"
                        ".map((v) => v.textContent)]")  # fmt: skip
    return [number(word.split("=")[-1]) for word in words]


def number(word):
    mantissa, _, power = word.strip().replace("−", "-").partition("10")
    if not power or not set(power) <= set("⁰¹²³⁴⁵⁶⁷⁸⁹⁻"):
        return float(word.strip().replace("−", "-"))
    exponent = int("".join("-" if c == "⁻" else str("⁰¹²³⁴⁵⁶⁷⁸⁹".index(c)) for c in power))
    return float(mantissa.rstrip("·") or 1) * 10.0**exponent


def picture(driver):
    """What is on the screen, as an array."""
    from PIL import Image

    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    return np.asarray(Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB"), float)


def changed(one, other):
    """The share of pixels that differ visibly."""
    return float((np.abs(one - other).max(axis=-1) > 24).mean())


def slide(driver, place):
    ask(driver, "const s = root.querySelector('input[type=range]'); s.value = arguments[0];"
                "s.dispatchEvent(new Event('input', {bubbles: true}));", str(place))  # fmt: skip


def test_the_slider_moves_the_tokens_and_the_numbers_are_those_of_the_run(talk, run):
    assert ask(talk, "return player.scene.kind") == "webgl"
    slide(talk, 0)
    before, count = picture(talk), int(ask(talk, "return player.data.times.length"))
    assert count == len(run.time)
    for k in (0, 17, 30, 40):
        slide(talk, 20 * k)
        time, energy, clusters = shown(talk)
        assert time == pytest.approx(run.time[k], rel=ABOUT)
        assert energy == pytest.approx(float(run["energy"][k]), rel=ABOUT)
        assert clusters == int(run["cluster_count"][k])
    assert changed(before, picture(talk)) > 0.01


def test_places_in_the_page_are_those_of_the_run(talk, run):
    raw = np.array(ask(talk, "return [...player.scene.frames.raw]")).reshape(run["tokens"].shape)
    np.testing.assert_allclose(raw, run["tokens"].values, atol=1 / 65534 + 1e-7)


def test_a_token_is_drawn_where_it_is(browser, tmp_path):
    looks(browser)
    there = np.array([0.35, -0.75, 0.4]) / np.linalg.norm([0.35, -0.75, 0.4])
    browser.get(pl.export_page(run_of(np.tile(there, (2, 1, 1))), tmp_path / "one.html").as_uri())
    x, y, base = browser.execute_script(
        f"{PLAYER} const box = root.querySelector('.scene').getBoundingClientRect();"
        "return [box.left + box.width / 2, box.top + box.height / 2, Math.min(box.width, box.height)]"
    )
    azimuth, elevation, eye = -np.pi / 3, 0.38, 4.6
    right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
    towards = np.array([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)])
    scale = 0.42 * base * np.sqrt(eye**2 - 1) / (eye - there @ towards)
    at = np.array([x + scale * (there @ right), y - scale * (there @ np.cross(towards, right))])
    seen = picture(browser)
    ball = seen[int(at[1]) - 3 : int(at[1]) + 4, int(at[0]) - 3 : int(at[0]) + 4].mean(axis=(0, 1))
    beside = seen[int(at[1]) + 40, int(at[0])]
    assert np.ptp(ball) > 40 > np.ptp(beside) + 10  # coloured on a pale globe


def test_it_plays_and_stops_by_keyboard_alone(talk):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def press(*keys):
        ActionChains(talk).send_keys(*keys).perform()

    ask(talk, "root.querySelector('.player').focus()")
    press(" ")
    assert ask(talk, "return player.playing")
    talk.execute_async_script("setTimeout(arguments[0], 600)")
    press(" ")
    assert not ask(talk, "return player.playing")
    assert ask(talk, "return player.place") > 0
    press(".")
    place = ask(talk, "return player.place")
    assert place == round(place)
    press(",")
    assert ask(talk, "return player.place") == place - 1
    press("c")
    assert ask(talk, "return root.querySelector('[aria-pressed=true]').textContent") == "by cluster"
    press(Keys.END, Keys.HOME)
    assert ask(talk, "return player.place") == 0
    ask(talk, "root.querySelector('.scene').focus()")
    before, place = ask(talk, "return player.scene.camera"), ask(talk, "return player.place")
    press(Keys.ARROW_RIGHT)
    after = ask(talk, "return player.scene.camera")
    assert after["azimuth"] < before["azimuth"] and ask(talk, "return player.place") == place


def test_everything_can_be_reached_by_tab_and_has_a_name(talk):
    names = ask(talk, "return [...root.querySelectorAll('button, input, select, .scene, summary')]"
                      ".filter((e) => e.getClientRects().length).map((e) => [e.tabIndex,"
                      " e.getAttribute('aria-label') || e.textContent])")  # fmt: skip
    assert len(names) >= 9
    assert all(tab >= 0 and name.strip() for tab, name in names)
    assert "40 tokens on the sphere S²" in ask(talk, "return root.querySelector('.scene').getAttribute('aria-label')")


def test_light_and_dark_follow_the_reader(talk):
    light = picture(talk)
    looks(talk, dark=True)
    dark = picture(talk)
    assert light[-1, 5].mean() > 245 and dark[-1, 5].mean() < 30
    contrast = ask(talk, "const s = getComputedStyle(root.querySelector('h1')); return s.color")
    assert min(map(int, re.findall(r"\d+", contrast))) > 200


@pytest.mark.parametrize("width", [380, 1300])
def test_nothing_is_cut_off(talk, width):
    looks(talk, width=width)
    picture(talk)
    wide, over = ask(talk, "return [document.documentElement.scrollWidth, [...root.querySelectorAll('button, select,"
                           " input, svg, h1, .time')].filter((e) => { const b = e.getBoundingClientRect();"
                           " return b.right > innerWidth + 1 || b.left < -1; }).length]")  # fmt: skip
    assert wide <= width and over == 0


def test_less_motion_is_respected(browser, run, tmp_path):
    for calm in (False, True):
        looks(browser, calm=calm)
        path = tmp_path / f"{calm}.html"
        path.write_text(page(frames(run), autoplay=True))
        browser.get(path.as_uri())
        assert ask(browser, "return player.playing") is not calm


def test_without_webgl_a_canvas_does_it_and_says_so(browser, run, tmp_path):
    looks(browser)
    path = run.export(tmp_path / "talk.html")
    script = (
        "HTMLCanvasElement.prototype.getContext = new Proxy(HTMLCanvasElement.prototype.getContext,"
        " {apply: (f, me, how) => how[0].startsWith('webgl') ? null : Reflect.apply(f, me, how)});"
    )
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    try:
        browser.get(path.as_uri())
        assert ask(browser, "return player.scene.kind") == "canvas"
        assert "No WebGL here" in ask(browser, "return root.querySelector('.note').innerText")
        before = picture(browser)
        slide(browser, 800)
        assert changed(before, picture(browser)) > 0.01
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})


def test_a_page_asks_nobody_and_cannot(talk):
    assert ask(talk, "return performance.getEntriesByType('resource').length") == 0
    refused = talk.execute_async_script(
        "fetch('https://example.org').then(() => arguments[0]('sent'), () => arguments[0]('refused'))"
    )
    assert refused == "refused"
    assert any("Content Security Policy" in entry["message"] for entry in talk.get_log("browser"))


def test_playing_keeps_its_pace_and_tells_the_time(talk):
    heard = talk.execute_async_script(
        "const done = arguments[0], heard = []; const player = globalThis.player;"
        "document.getElementById('player').addEventListener('timechange', (e) => heard.push(e.detail));"
        "player.options.seconds = 2; player.setTime(0); player.play();"
        "const wait = setInterval(() => { if (!player.playing) { clearInterval(wait); done(heard); } }, 50);"
    )
    assert heard[-1] == pytest.approx(40.0)
    assert all(a <= b for a, b in pairwise(heard))


def test_other_data_keep_the_camera_and_the_time(talk):
    after = ask(talk, "player.setTime(10); player.scene.turn(40, 10); const camera = player.scene.camera;"
                      "const other = {...player.data, title: 'Other', times: player.data.times.map((t) => 2 * t)};"
                      "player.setData(other);"
                      "return [player.time, player.scene.camera.azimuth === camera.azimuth,"
                      " root.querySelector('h1').textContent]")  # fmt: skip
    assert after[0] == pytest.approx(10.0)
    assert after[1:] == [True, "Other"]


def test_pictures_and_films_are_made(talk):
    code = f"{PLAYER} const done = arguments[0]; player.options.seconds = 0.5;"
    png = (
        "player.screenshot().then(async (b) => done([b.type, [...new Uint8Array(await b.arrayBuffer()).slice(0, 4)]]))"
    )
    assert talk.execute_async_script(code + png) == ["image/png", [0x89, 0x50, 0x4E, 0x47]]
    svg = ask(talk, "return player.curvesSvg()")
    parsed = ask(talk, "return new DOMParser().parseFromString(arguments[0], 'image/svg+xml')"
                       ".querySelectorAll('parsererror').length", svg)  # fmt: skip
    assert parsed == 0 and svg.count("<g ") == 2
    code = code.replace("0.5", "2")
    kind, size = talk.execute_async_script(code + "player.record().then((b) => done([b.type, b.size]))")
    assert kind == "video/webm" and size > 1000


def test_a_gif_is_the_run_from_beginning_to_end(talk):
    import base64

    code = (
        f"{PLAYER} const done = arguments[0]; player.options.seconds = 1; player.setTime(2);"
        "player.gif().then(async (b) => { let s = '';"
        "for (const v of new Uint8Array(await b.arrayBuffer())) s += String.fromCharCode(v);"
        "done([b.type, btoa(s), player.time]); })"
    )
    kind, text, time = talk.execute_async_script(code)
    assert kind == "image/gif" and time == pytest.approx(2.0)
    from PIL import Image, ImageSequence

    with Image.open(io.BytesIO(base64.b64decode(text))) as film:
        pictures = [np.asarray(f.convert("RGB"), float) for f in ImageSequence.Iterator(film)]
    assert len(pictures) >= 10 and pictures[0].shape[1] <= 640
    assert np.abs(pictures[0] - pictures[-1]).max() > 60 and pictures[0].std() > 10


def test_hostile_words_are_words(browser, tmp_path):
    hostile = "<img src=x onerror=\"document.title='hit'\">"
    run = run_of(meeting(), outcome=hostile, **{hostile: np.linspace(0, 1, 41)})
    words = dict.fromkeys(("title", "subtitle", "command", "python"), hostile)
    browser.get(pl.export_page(run, tmp_path / "hostile.html", **words).as_uri())
    assert ask(browser, "return root.querySelectorAll('img').length") == 0
    assert ask(browser, "return root.querySelector('h1').textContent") == hostile
    assert hostile in ask(browser, "return root.querySelector('.curves').textContent")
    assert browser.title == hostile


def test_a_notebook_plays_it_in_a_box(browser, run, tmp_path):
    looks(browser)
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><body>{run._repr_html_()}")
    browser.get((tmp_path / "notebook.html").as_uri())
    browser.switch_to.frame(0)
    assert ask(browser, "return player.scene.kind") == "webgl"
    browser.switch_to.default_content()
