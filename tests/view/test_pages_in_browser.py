"""All pages in a real browser, from a real server: they open, follow their sliders, show the library's numbers."""

import hashlib
import io
import json
import time

import msgspec
import numpy as np
import pytest
import xarray as xr
from browser import looks, need_browser, opened_browser
from serving import TOKEN, served

import pathlines as pl
from pathlines.architecture import from_numbers
from pathlines.limit.architecture.predict import predict
from pathlines.sweep.recall import Recall

pytest.importorskip("nicegui")

PAGES = {
    "/play": "Self-attention", "/theory": "413 claims", "/retrieval": "Lost in the middle",
    "/flows": "A density made", "/flows/prompts": "Prompts that share", "/advise": "What depth will do",
    "/studies": "three orthogonal tokens",
}  # fmt: skip
DRAWN = (
    "return document.querySelector('.chart svg, #player, .overview, .statement') !== null && "
    "(!document.querySelector('#player') || document.querySelector('#player').shadowRoot !== null)"
)
LOCAL = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    need_browser()
    with served(tmp_path_factory.mktemp("store")) as found:
        yield found


@pytest.fixture(scope="module")
def browser(site, tmp_path_factory):
    with opened_browser(tmp_path_factory.mktemp("browser"), LOCAL, network=True) as driver:
        looks(driver)
        driver.get(f"{site.root}/retrieval?token={TOKEN}")
        yield driver


def until(driver, code, *arguments, seconds=20):
    """What the code returns once it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = driver.execute_script(code, *arguments)
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"never true: {code}")


def opened(driver, site, address):
    driver.get(site.root + address)
    until(driver, DRAWN)
    until(driver, "return window.did_handshake")
    return driver


def picture(driver):
    from PIL import Image

    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    return np.asarray(Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB"), float)


def slide(driver, field, value):
    """Move the slider of a field, as a hand would."""
    driver.execute_script(
        "const s = document.querySelector(`#f-${arguments[0]}`).parentElement.querySelector('.slider');"
        "s.value = arguments[1]; s.dispatchEvent(new Event('input', {bubbles: true}));", field, str(value),
    )  # fmt: skip


def settled(driver, word):
    """Until the figures are those of an address with that word in it."""
    until(driver, "return document.querySelector('#sheet').dataset.query?.includes(arguments[0])", word)


def answer(driver, name):
    """The JSON that the page last drew, asked for again."""
    return driver.execute_async_script(
        "const done = arguments[1]; fetch(`/data/${arguments[0]}?${window.pathlines.query()}`)"
        ".then((a) => a.json()).then(done)", name,
    )  # fmt: skip


def complaints(driver):
    return [entry["message"] for entry in driver.get_log("browser")]


@pytest.mark.parametrize("address", PAGES)
def test_each_page_opens_fits_a_telephone_and_asks_nobody_else(site, browser, address):
    looks(browser)
    opened(browser, site, address)
    assert PAGES[address] in until(browser, "return document.body.innerText")
    hosts = browser.execute_script("return performance.getEntriesByType('resource').map((e) => new URL(e.name).host)")
    assert set(hosts) == {f"127.0.0.1:{site.port}"}
    looks(browser, width=380, height=800)
    picture(browser)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 380
    names = browser.execute_script(
        "return [...document.querySelectorAll('main input, main select, main button, main textarea')]"
        ".filter((e) => e.getClientRects().length).map((e) => e.getAttribute('aria-label') ||"
        " e.labels?.[0]?.textContent || e.textContent || e.title)"
    )
    assert all(name.strip() for name in names)
    looks(browser)
    assert complaints(browser) == []


def test_a_slider_of_retrieval_moves_the_curve_to_the_numbers_of_theory(site, browser):
    opened(browser, site, "/retrieval")
    before = picture(browser)
    slide(browser, "depth", 2.5)
    settled(browser, "depth=2.5")
    assert np.abs(before - picture(browser)).max(axis=-1).__gt__(40).mean() > 0.002
    theory = Recall(depth=2.5).forecast()
    found = answer(browser, "retrieval")
    np.testing.assert_allclose(found["profile"], theory.profile, rtol=1e-7)
    assert "depth=2.5" in browser.current_url
    assert browser.execute_script("return document.querySelector('#command').textContent").endswith("--depth 2.5")


def test_what_is_refused_is_said_beside_the_field_and_the_curve_stays(site, browser):
    opened(browser, site, "/retrieval")
    settled(browser, "")
    browser.execute_script(
        "const f = document.querySelector('#f-depth'); f.value = '-1'; f.dispatchEvent(new Event('change'))"
    )
    said = until(browser, "return document.querySelector('#e-depth').textContent")
    assert "must be a number > 0" in said and "depth=-1" not in browser.current_url


def test_a_preset_of_play_is_run_and_its_numbers_are_those_of_the_flow(site, browser):
    opened(browser, site, "/play?model=sa&n=8&until=2&beta=4&frames=11")
    slide(browser, "beta", 9)
    until(browser, "return document.querySelector('#player').dataset.query?.includes('beta=9')")
    curves = browser.execute_script("return window.pathlines.player().data.curves")
    import jax

    start = pl.Sphere(3).uniform(jax.random.key(0), n=8)
    model = pl.SelfAttention(beta=9.0, summation="dense")
    run = pl.flow(model, start, times=np.linspace(0, 2, 11), record=["mean_overlap"], form="tokens")
    shown = next(c for c in curves if c["name"] == "mean_overlap")
    np.testing.assert_allclose(shown["values"], run["mean_overlap"], rtol=1e-7)
    page = browser.execute_async_script(
        "fetch(document.querySelector('#export').href).then((a) => a.text()).then(arguments[0])"
    )
    assert "default-src 'none'" in page and "pathlines-frames/1" in page


@pytest.mark.slow
def test_a_claim_is_found_and_run_at_a_setting_of_the_reader(site, browser):
    opened(browser, site, "/theory")
    browser.execute_script(
        "const s = document.querySelector('#words'); s.value = 'scalar two-cluster CL-43';"
        "s.dispatchEvent(new Event('input'))"
    )
    browser.execute_script(
        "const s = document.querySelector('#words'); s.value = 'CL-43'; s.dispatchEvent(new Event('input'))"
    )
    until(browser, "return document.querySelectorAll('#list li').length === 1")
    browser.execute_script("document.querySelector('#list a').click()")
    until(browser, "return document.querySelector('#f-beta')")
    slide(browser, "beta", 2)
    until(browser, "return document.querySelector('#command').textContent.includes('beta=2')")
    browser.execute_script("window.pathlines.run()")
    until(browser, "return document.querySelector('#running').textContent.startsWith('holds')", seconds=90)
    assert until(browser, "return document.querySelectorAll('.card-inside td.num').length") >= 6
    outcome = pl.verify("clustering/CL-43", changes={"beta": 2.0})[0].outcome
    shown = browser.execute_script("return document.querySelector('.card-inside td.num').textContent")
    assert float(shown) == pytest.approx(outcome.checks[0].measured[0], rel=1e-8)


def test_errata_stand_beside_what_holds(site, browser):
    opened(browser, site, "/theory?claim=clustering/ER-01")
    both = until(browser, "return [...document.querySelectorAll('.pair .legend')].map((e) => e.textContent)")
    assert both == ["As printed", "What holds"]


def test_a_configuration_that_is_chosen_is_read_and_its_knobs_move_the_curve(site, browser, tmp_path):
    opened(browser, site, "/advise")
    config = tmp_path / "..%2f..%2fetc.json"
    config.write_text(json.dumps({"model_type": "gpt2", "n_embd": 128, "n_head": 4, "n_layer": 6, "vocab_size": 99}))
    browser.find_element("id", "file").send_keys(str(config))
    settled(browser, "record=")
    slide(browser, "branches", -1)
    settled(browser, "branches=-1")
    found = answer(browser, "advise")
    source = pl.architecture.read_architecture(config).architecture
    half = {n: 0.5 * getattr(source, n) for n in ("attention_residual", "mlp_residual")}
    expected = predict(source.changed(**half), 64).mean_cosine
    np.testing.assert_allclose(found["mean_cosine"], expected, rtol=1e-6)
    assert "etc" not in browser.current_url


def test_a_piece_is_added_and_the_density_is_that_of_the_schedule(site, browser):
    opened(browser, site, "/flows?pieces=[[1.5,1,0,0.6]]")
    browser.execute_script("[...document.querySelectorAll('.panel button')].find((b) => b.textContent === '+').click()")
    settled(browser, "piece=2")
    slide(browser, "b", -1)
    settled(browser, "-1")
    flow = pl.EuclideanSchedule([[1.5], [1.0]], [[1.0], [1.0]], [0.0, -1.0], [0.6, 1.0])
    line = answer(browser, "flows")["density"]["lines"][0]
    expected = np.exp(flow.log_prob(np.array(line["x"])[:, None]))
    np.testing.assert_allclose(line["y"], expected, rtol=1e-5, atol=1e-9)


def test_a_study_is_opened_and_a_point_of_it_leads_to_its_run(site, browser, tmp_path):
    opened(browser, site, "/studies")
    data = xr.Dataset(
        {"overlap": (("beta", "n"), np.arange(40.0).reshape(8, 5) / 40)},
        {"beta": np.arange(1.0, 9), "n": [4, 8, 16, 32, 64]}, {"model": "sa", "until": 3.0},
    )  # fmt: skip
    path = tmp_path / "<img src=x>.nc"
    path.write_bytes(bytes(data.to_netcdf(engine="h5netcdf")))
    browser.find_element("id", "file").send_keys(str(path))
    settled(browser, hashlib.sha256(path.read_bytes()).hexdigest()[:20])
    assert answer(browser, "studies")["figure"]["values"] == data["overlap"].values.tolist()
    address = browser.execute_script("return window.pathlines.runAt(2, 3)")
    assert address == "/play?model=sa&until=3&n=16&beta=4"
    assert complaints(browser) == []


def test_a_file_that_a_study_wrote_is_shown_and_a_point_opens_the_run_that_it_was(site, browser, tmp_path):
    """From `pl.study` to the numbers on the page to the run of one of its points."""
    path = tmp_path / "study.nc"
    axes = {"beta": "1:5:9", "n": [4, 6, 8, 10, 12, 14, 16, 18]}
    study = pl.study("sa", axes, repeat=3, record=["mean_overlap"], until=1.0, d=3, seed=4)
    data = study.run(store=tmp_path / "store", out=path)
    opened(browser, site, "/studies")
    browser.find_element("id", "file").send_keys(str(path))
    settled(browser, hashlib.sha256(path.read_bytes()).hexdigest()[:20])
    shown = answer(browser, "studies")
    mean = data["mean_overlap"].mean("repeat").transpose(shown["y"], shown["x"])
    np.testing.assert_allclose(shown["figure"]["values"], mean.values, rtol=1e-7)
    where = {"beta": 8, "n": 1}
    address = browser.execute_script(
        "return window.pathlines.runAt(...arguments)", where[shown["x"]], where[shown["y"]]
    )
    assert (
        "model=sa" in address
        and "beta=5" in address
        and "n=6" in address
        and "until=1" in address
        and "seed=4" in address
    )
    status, text = site.get(address.replace("/play?", "/data/play?") + "")
    assert status == 200
    curve = next(c for c in json.loads(text)["curves"] if c["name"] == "mean_overlap")
    first = data["mean_overlap"].sel(beta=5.0, n=6).isel(repeat=0)
    assert curve["values"][-1] == pytest.approx(float(first), rel=1e-6)
    assert complaints(browser) == []


def test_curves_are_read_by_keyboard_alone(site, browser):
    opened(browser, site, "/retrieval")
    until(browser, "return document.querySelector('#profile .drawing svg')")
    drawing = browser.find_element("css selector", "#profile .drawing")
    browser.execute_script("arguments[0].focus()", drawing)
    drawing.send_keys("\ue011" + "\ue014" * 3)  # Home, three to the right
    said = browser.execute_script("return document.querySelector('#profile .where').textContent")
    shown = answer(browser, "retrieval")["figure"]
    line = shown["lines"][0]
    assert float(said.split(" = ")[1].split(",")[0]) == pytest.approx(line["x"][3], rel=1e-3)
    value = browser.execute_script("return document.querySelector('#profile li output').textContent")
    assert float(value) == pytest.approx(line["y"][3], rel=2e-3)
    drawing.send_keys("\ue015")  # down: the next line is told
    assert shown["lines"][1]["label"] in browser.execute_script(
        "return document.querySelector('#profile .where').textContent"
    )


def test_playing_takes_no_byte_from_the_server(site, browser):
    """Seen by the debugging protocol: no request, and of the socket nothing but its pulse."""
    opened(browser, site, "/play?model=sa&n=8&until=2&frames=11")
    until(browser, "return window.pathlines.player()")
    time.sleep(4.0)  # three seconds after the last message of the server the page says that it was heard
    browser.get_log("performance")
    browser.execute_script("const p = window.pathlines.player(); p.options.seconds = 3; p.setTime(0); p.play()")
    time.sleep(2.0)
    assert browser.execute_script("return window.pathlines.player().playing")
    told = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    network = [m for m in told if m["method"].startswith("Network.")]
    frames = [m["params"]["response"]["payloadData"] for m in network if "webSocketFrame" in m["method"]]
    assert [m["method"] for m in network if "webSocketFrame" not in m["method"]] == []
    assert [text for text in frames if len(text) > 1] == []  # "2" and "3": ping and pong of the socket


def test_figures_are_saved_as_drawings_and_pictures(site, browser):
    opened(browser, site, "/studies")
    kinds = browser.execute_async_script(
        "const done = arguments[0], found = []; const old = URL.createObjectURL;"
        "URL.createObjectURL = (b) => { found.push(b.type); return old(b); };"
        "window.pathlines.save('svg').then(() => window.pathlines.save('png')).then(() => {"
        " URL.createObjectURL = old; done(found); })"
    )
    assert kinds[0] == "image/svg+xml" and kinds[-1] == "image/png"


def test_light_and_dark_follow_the_reader(site, browser):
    opened(browser, site, "/retrieval")
    light = picture(browser)
    looks(browser, dark=True)
    dark = picture(browser)
    looks(browser)
    assert light[5, 5].mean() > 245 and dark[5, 5].mean() < 30
    ink = "return document.querySelector('.chart svg text').getAttribute('fill')"
    assert browser.execute_script(ink)


HOSTILE = {
    "play": [{"n": "10000"}, {"beta": "NaN"}, {"beta": "-1"}, {"frames": "1000000"}, {"model": "nobody"}],
    "retrieval": [{"n": "100000000"}, {"beta": "nan"}, {"depth": "-1"}, {"mask": "../../x.npy"}, {"nobody": "1"}],
    "flows": [{"d": "7"}, {"pieces": "[[1,2]]"}, {"pieces": "[[1e999,1,0,1]]"}, {"acted": "NaN"}, {"nobody": "1"}],
    "prompts": [{"prompts": "10000"}, {"n": "NaN"}, {"shared": "4"}, {"seed": "-1"}, {"nobody": "1"}],
    "advise": [{"layers": "1000000"}, {"embedding": "NaN"}, {"record": "{"}, {"record": "[" * 3000}, {"n": "-1"}],
    "studies": [{"study": "../../etc/passwd"}, {"variable": "x"}, {"y": "none", "at.beta": "-1"}, {"at.nobody": "0"},
                {"x": "nobody"}, {"nobody": "1"}],
    "claim": [{"claim": "nobody"}, {"claim": ""}, {"claim": "clustering/CL-43", "set.n1": "NaN"},
              {"claim": "clustering/CL-43", "set.nobody": "1"}, {"claim": "clustering/CL-43", "nobody": "1"}],
    "claim-run": [{"claim": "clustering/CL-43", "set.n1": "100000000"}, {"claim": "x" * 10_000}],
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_addresses_get_one_line_and_never_a_traceback(site, name):
    for words in HOSTILE[name]:
        status, said = site.data(name, **words)
        assert status == 422 and set(said) == {"message"}, (words, status, said)
        assert 10 < len(said["message"]) < 600 and "\n" not in said["message"] and "Traceback" not in said["message"]
    assert site.data("retrieval")[0] == 200


@pytest.mark.parametrize("address", [a for a in PAGES if a != "/play"])
def test_pages_of_hostile_addresses_say_what_is_wrong(site, browser, address):
    browser.get(f"{site.root}{address}?nobody=1&claim=nobody&n=NaN")
    said = until(browser, "return document.querySelector('.banner').textContent")
    assert "nobody" in said or "NaN" in said
    browser.get_log("browser")


def test_files_are_limited_and_read_as_data_only(site):
    big = b"x" * 1_500_000
    assert "kB" in json.loads(site.get("/data/config", big)[1])["message"]
    for body in (b"", b"{", b"\xff\xfe", b'{"model_type": "../../etc"}', b"[" * 100_000, b"nan 1 1 1 1 1"):
        status, text = site.get("/data/config", body)
        assert status == 422 and len(json.loads(text)["message"]) < 4000
    for body in (b"", b"PK\x03\x04", b"\x89HDF\r\n\x1a\n" + b"\0" * 300, b"CDF\x01" + b"\xff" * 50):
        status, text = site.get("/data/study-file", body)
        assert status == 422 and "message" in json.loads(text)
    told = {"Content-Length": "100000000"}
    assert site.get("/data/config", b"x", **told)[0] == 413
    assert site.get("/data/config", b"{}", Origin="http://evil.example")[0] == 403
    assert site.get("/data/config", b"{}", Cookie="none=1")[0] == 401


def test_the_record_in_an_address_is_the_architecture():
    from pathlines.view.pages.advise import architecture_of, record_text

    a = from_numbers((96, 4, 3, 64, 128, 0.05)).architecture.changed(placement="post", qk_norm=True)
    assert architecture_of(record_text(a)) == a
    assert msgspec.json.decode(record_text(a))["placement"] == "post"
