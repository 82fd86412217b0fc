"""Three hundred kills: nothing that was finished is lost or computed again, no half file is trusted, nobody lives on.

Run with ``pytest -m slow tests/kills -n 0 -s`` (about twenty minutes on two free cores). Moments are uniform over the
time that the work takes; after each kill the same command is run again and must succeed.
"""

import ctypes
import json
import os
import re
import shutil
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from killing import Attempt, descendants, gone, kills, program
from PIL import Image

from pathlines.foundation.files import UNFINISHED
from pathlines.store import Store, open_run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs Linux")]

COUNTS = {
    "verify": 40, "worker": 25, "run": 55, "figure": 40, "advise": 30, "animate": 25, "native": 40, "store": 45,
}  # fmt: skip
TINY = Path(__file__).with_name("tiny.py")
HOW = ("stored", "resumed", "from the start")
ROW = re.compile(r"^(tiny/\d) .* (\S+)$", re.MULTILINE)


@pytest.fixture
def place(tmp_path):
    """New folders, one after another."""
    counter = iter(range(10**6))

    def new():
        folder = tmp_path / f"place-{next(counter)}"
        folder.mkdir()
        return folder

    return new


def trusted(root):
    """Names of everything stored; a file that is there but not trusted is an error."""
    kinds = {".nc": Store(root).get, ".json": Store(root).get_document}
    files = [p for p in Path(root).glob("*") if p.suffix in kinds and not p.name.startswith(UNFINISHED)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(kinds[p.suffix](p.stem) is not None for p in files)
    return {p.stem for p in files}


def cleaned(root):
    """What is left after an hour and one more writer: no unfinished files."""
    for path in Path(root).glob(f"{UNFINISHED}*"):
        os.utime(path, (0, 0))
    Store(root).check_writable()
    return not list(Path(root).glob(f"{UNFINISHED}*"))


def seconds(attempt):
    """What the whole work takes when everything is warm."""
    for _ in range(2):
        found = attempt()
        code, whole = found.finish()
        assert code == 0, found.text
    return whole


def report(name, counts):
    print(f"\n{name}: {json.dumps(counts)}", flush=True)


def test_verify(place):
    words = ("--load", TINY, "verify", "tiny", "--jobs", 2)
    whole = seconds(lambda: Attempt(place(), program, *words, PATHLINES_STORE=str(place())))
    total = {"announced": 0, "stored": 0, "computed again": 0}

    def trial(moment, number):
        folder = place()
        first = Attempt(folder, program, *words, PATHLINES_STORE=str(folder))
        killed, children = first.kill_after(moment * whole, number)
        if not killed:
            return False
        announced, stored = {name for name, _ in ROW.findall(first.text)}, trusted(folder)
        assert len(stored) >= len(announced)
        assert gone(children)
        second = Attempt(folder, program, *words, PATHLINES_STORE=str(folder))
        assert second.finish()[0] == 0, second.text
        rows = dict(ROW.findall(second.text))
        assert len(rows) == 8
        assert all(rows[name] == "stored" for name in announced), (announced, rows)
        again = len(stored) - sum(end == "stored" for end in rows.values())
        for key, more in zip(total, (len(announced), len(stored), again), strict=True):
            total[key] += more
        assert again == 0
        assert cleaned(folder)
        shutil.rmtree(folder)
        return True

    report("verify", kills(COUNTS["verify"], 1, trial) | total)


def test_worker(place):
    words = ("--load", TINY, "verify", "tiny", "--jobs", 2)
    whole = seconds(lambda: Attempt(place(), program, *words, PATHLINES_STORE=str(place())))
    lost, random = [], np.random.default_rng(7)

    def trial(moment, number):
        nonlocal whole
        folder = place()
        first = Attempt(folder, program, *words, PATHLINES_STORE=str(folder))
        first.process.join(moment * whole)
        workers = descendants(first.process.pid)
        if not workers:
            whole = min(whole, first.finish()[1])  # the machine may be less busy than it was
            return False
        os.kill(int(random.choice(workers)), number)
        code, _ = first.finish()
        failed = re.findall(r"Failed to run: (.*)", first.text)
        failed = failed[0].split(", ") if failed else []
        assert code == (1 if failed else 0), first.text
        assert len(failed) <= 1
        assert len(trusted(folder)) == 8 - len(failed)
        lost.extend(failed)
        second = Attempt(folder, program, *words, PATHLINES_STORE=str(folder))
        assert second.finish()[0] == 0, second.text
        rows = dict(ROW.findall(second.text))
        assert {name for name, end in rows.items() if end != "stored"} == set(failed)
        shutil.rmtree(folder)
        return True

    report("worker", kills(COUNTS["worker"], 2, trial) | {"claims that failed with their worker": len(lost)})


def test_run(place):
    """Two kills of three come after the first checkpoint: compiling takes most of the time."""
    words = [
        "run",
        "sa",
        "--n",
        "300",
        "--d",
        "3",
        "--until",
        "12",
        "--beta",
        "9",
        "--rtol",
        "1e-11",
        "--json",
        "--out",
    ]
    setting = {"PATHLINES_CHECKPOINT_SECONDS": "0"}

    def attempt(folder):
        return Attempt(folder, program, *words, folder / "a.nc", PATHLINES_STORE=str(folder), **setting)

    def begun(folder):
        return lambda: any(folder.glob("*-partial.nc"))

    folder = place()
    whole, total = seconds(lambda: attempt(place())), dict.fromkeys(HOW, 0)
    reference = attempt(folder)
    first_checkpoint = reference.wait_until(begun(folder))
    assert reference.finish()[0] == 0, reference.text
    last = time.monotonic() - reference.began - first_checkpoint
    final = json.loads(reference.text)["final"]

    def trial(moment, number):
        folder = place()
        first, late = attempt(folder), moment > 0.35
        moment = first.wait_until(begun(folder)) + (moment - 0.35) / 0.65 * last if late else moment / 0.35 * whole
        if not first.kill_after(moment, number)[0]:
            return False
        names = {n for n in trusted(folder) if n.startswith("run-sa")}
        if (folder / "a.nc").exists():
            assert open_run(folder / "a.nc").outcome == "completed"
        done, partial = any(not n.endswith("partial") for n in names), any(n.endswith("partial") for n in names)
        second = attempt(folder)
        assert second.finish()[0] == 0, second.text
        again = json.loads(second.text)
        assert again["final"] == final
        assert again["stored"] == done
        assert again["resumed"] == (partial and not done)
        total["stored" if done else "resumed" if partial else "from the start"] += 1
        assert not list(folder.glob("*-partial.nc"))
        assert cleaned(folder)
        shutil.rmtree(folder)
        return True

    report("run", kills(COUNTS["run"], 3, trial) | total)


def whole_picture(path):
    content = Path(path).read_bytes()
    return content.startswith(b"%PDF") and content.rstrip().endswith(b"%%EOF")


def test_figure(place):
    """The last figure was there before: it stays until it is drawn anew."""
    words = ("--load", TINY, "figure", "tiny", "--figure")
    folder = place()
    whole = seconds(lambda: Attempt(folder, program, *words, folder / "pictures", PATHLINES_STORE=str(place())))
    old = folder / "pictures" / "tiny-7.pdf"
    total = {"announced": 0, "drawn again": 0}

    def trial(moment, number):
        folder = place()
        pictures = folder / "pictures"
        pictures.mkdir()
        shutil.copy(old, pictures)
        first = Attempt(folder, program, *words, pictures, PATHLINES_STORE=str(folder))
        if not first.kill_after(moment * whole, number)[0]:
            return False
        announced = re.findall(r"^(tiny/\d): (\S+)", first.text, re.MULTILINE)
        assert all(whole_picture(path) for path in pictures.glob("tiny-*.pdf"))
        assert all(Path(path).exists() for _, path in announced)
        second = Attempt(folder, program, *words, pictures, PATHLINES_STORE=str(folder))
        assert second.finish()[0] == 0, second.text
        stored = set(re.findall(r"^(tiny/\d): .*\(stored", second.text, re.MULTILINE))
        again = {name for name, _ in announced} - stored
        total["announced"] += len(announced)
        total["drawn again"] += len(again)
        assert again == set()
        assert len(list(pictures.glob("tiny-*.pdf"))) == 8
        assert cleaned(pictures)
        shutil.rmtree(folder)
        return True

    report("figure", kills(COUNTS["figure"], 4, trial) | total)


def test_advise(place):
    words = ["advise", "64", "4", "4", "64", "256", "0.02", "--report", "page.html", "--figure", "curve.pdf"]

    def attempt(folder):
        return Attempt(folder, in_folder, folder, words, PATHLINES_STORE=str(folder))

    whole = seconds(lambda: attempt(place()))
    total = {"announced": 0}

    def trial(moment, number):
        folder = place()
        first = attempt(folder)
        if not first.kill_after(moment * whole, number)[0]:
            return False
        page, curve = folder / "page.html", folder / "curve.pdf"
        total["announced"] += len(re.findall(r"^(?:report|figure): ", first.text, re.MULTILINE))
        assert not page.exists() or page.read_text().rstrip().endswith("</html>")
        assert not curve.exists() or whole_picture(curve)
        second = attempt(folder)
        assert second.finish()[0] == 0, second.text
        assert page.exists()
        assert whole_picture(curve)
        assert cleaned(folder)
        shutil.rmtree(folder)
        return True

    report("advise", kills(COUNTS["advise"], 5, trial) | total)


def in_folder(folder, words):
    os.chdir(folder)
    program(*words)


def test_animate(place):
    def attempt(folder):
        words = ("--load", TINY, "animate", "tiny/film", "--animate", folder / "film.gif", "--dpi", 50)
        return Attempt(folder, program, *words, PATHLINES_STORE=str(folder))

    def frames(path):
        with Image.open(path) as film:
            for k in range(film.n_frames):
                film.seek(k)
            return film.n_frames

    folder = place()
    whole = seconds(lambda: attempt(folder))
    many = frames(folder / "film.gif")

    def trial(moment, number):
        folder = place()
        if not attempt(folder).kill_after(moment * whole, number)[0]:
            return False
        assert not (folder / "film.gif").exists() or frames(folder / "film.gif") == many
        second = attempt(folder)
        assert second.finish()[0] == 0, second.text
        assert frames(folder / "film.gif") == many
        assert cleaned(folder)
        shutil.rmtree(folder)
        return True

    report("animate", kills(COUNTS["animate"], 6, trial))


def build_kernels(sources):
    """The compilation of the kernels with other sources; says when it is done."""
    from pathlines.kernels.native import build

    build.FOLDER = Path(sources)
    print(build._compiled(), flush=True)


def test_native(place):
    """Three small sources and a compiler that takes its time: the path of the kernels, in seconds."""
    tools = place()
    for k in range(3):
        (tools / f"part{k}.cpp").write_text(f'extern "C" int part{k}() {{ return {k}; }}')
    slow = tools / "compiler"
    slow.write_text('#!/bin/sh\nsleep 0.1\ng++ "$@" && sleep 0.1\n')
    slow.chmod(0o755)

    def attempt(folder):
        return Attempt(folder, build_kernels, tools, XDG_CACHE_HOME=str(folder), CXX=f"env LC_ALL=C {slow}")

    whole = seconds(lambda: attempt(place()))
    total = {"announced": 0, "compiled again": 0}

    def trial(moment, number):
        folder = place()
        first = attempt(folder)
        killed, children = first.kill_after(moment * whole, number)
        if not killed:
            return False
        announced = first.text.strip()
        before = Path(announced).stat().st_mtime_ns if announced else None
        second = attempt(folder)
        assert second.finish()[0] == 0, second.text
        library = Path(second.text.strip())
        assert [getattr(ctypes.CDLL(str(library)), f"part{k}")() for k in range(3)] == [0, 1, 2]
        total["announced"] += bool(announced)
        total["compiled again"] += before is not None and library.stat().st_mtime_ns != before
        assert gone(children)
        assert {p.suffix for p in library.parent.iterdir()} == {".so", ".sha256", ".lock"}
        assert len(list(library.parent.iterdir())) == 3
        shutil.rmtree(folder)
        return True

    report("native", kills(COUNTS["native"], 8, trial) | total)
    assert total["compiled again"] == 0


MANY = 20


def put_many(root):
    """Compute and put what the store does not have; say what is there."""
    store = Store(root)
    for k in range(MANY):
        kept = store.get(f"number-{k}")
        if kept is None:
            store.put(f"number-{k}", xr.Dataset({"x": (("i",), np.random.default_rng(k).normal(size=20_000))}))
        print(k, "put" if kept is None else "stored", flush=True)


def test_store(place):
    whole = seconds(lambda: Attempt(place(), put_many, place()))
    total = {"announced": 0, "computed again": 0}

    def trial(moment, number):
        folder = place()
        first = Attempt(folder, put_many, folder / "store")
        if not first.kill_after(moment * whole, number)[0]:
            return False
        announced = {int(k) for k in re.findall(r"^(\d+) put$", first.text, re.MULTILINE)}
        trusted(folder / "store")
        second = Attempt(folder, put_many, folder / "store")
        assert second.finish()[0] == 0, second.text
        stored = {int(k) for k in re.findall(r"^(\d+) stored$", second.text, re.MULTILINE)}
        total["announced"] += len(announced)
        total["computed again"] += len(announced - stored)
        for k in range(MANY):
            found = Store(folder / "store").get(f"number-{k}")["x"].values
            np.testing.assert_array_equal(found, np.random.default_rng(k).normal(size=20_000))
        assert cleaned(folder / "store")
        shutil.rmtree(folder)
        return True

    report("store", kills(COUNTS["store"], 9, trial) | total)
    assert total["computed again"] == 0


def test_counts_add_up():
    assert sum(COUNTS.values()) == 300
