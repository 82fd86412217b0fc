"""The server of the pages under 20 clients, the first thing that a reader sees, and frames of 5,000 points a second.

    python benchmarks/view.py

Twenty clients each move a slider of *Play* once a second for twenty seconds (n = 100 tokens of S², its usual state,
another β each time, so that nothing is answered from what was kept), on loopback. Latencies are wall time; the load of
the machine and the processor time of the server for each answer are written beside them. First paint is that of
headless Chromium (`paint` entries, and when the title is there), with the server running. Frames are counted
over five seconds of playing 5,000 points at 1000 × 700 in software rendering. Prints a table and writes
benchmarks/results/view.json.
"""

import json
import os
import platform
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "view"))

from browser import looks, opened_browser  # noqa: E402
from made import meeting, run_of  # noqa: E402
from serving import TOKEN, served  # noqa: E402

import pathlines as pl  # noqa: E402

CLIENTS, SECONDS, TOKENS, POINTS = 20, 20, 100, 5000
LOCAL = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"


def client(site, number, found, begin):
    """One reader who moves a slider every second."""
    begin.wait()
    start = time.perf_counter() + number / CLIENTS
    for k in range(SECONDS):
        time.sleep(max(0.0, start + k - time.perf_counter()))
        beta = 1 + 0.01 * (k * CLIENTS + number)
        asked, before = f"/data/play?model=sa&n={TOKENS}&beta={beta:.2f}", time.perf_counter()
        status, _ = site.get(asked, None, **{"X-Pathlines-Page": f"client-{number}"})
        found.append((time.perf_counter() - before, status))


def load(site):
    """Latencies of all requests, after one that compiles."""
    site.get(f"/data/play?model=sa&n={TOKENS}&beta=0.5")
    found, begin, before = [], threading.Barrier(CLIENTS), processor(site.pid)
    threads = [threading.Thread(target=client, args=(site, k, found, begin)) for k in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    waited = np.array([seconds for seconds, _ in found])
    p50, p95 = np.percentile(waited, [50, 95])
    refused = sum(status != 200 for _, status in found)
    each = (processor(site.pid) - before) / len(found)
    answered = {"requests": len(found), "not answered": refused, "server's processor s an answer": each}
    return answered | {"p50 s": p50, "p95 s": p95, "worst s": waited.max()}


def processor(pid):
    """Seconds of processor that a process has used (Linux)."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def paint(site, driver):
    """Seconds to the first paint and to the title of each page, the least of three."""
    found = {}
    for page in ("play", "theory", "retrieval", "flows", "advise", "studies"):
        times = []
        for _ in range(3):
            driver.get(f"{site.root}/{page}")
            for _ in range(200):
                entry = driver.execute_script(
                    "return [performance.getEntriesByName('first-contentful-paint')[0]?.startTime,"
                    " document.querySelector('h1')?.textContent ? performance.now() : null]"
                )
                if all(entry):
                    break
                time.sleep(0.02)
            times.append(entry)
        found[page] = {k: min(t[i] for t in times) / 1000 for i, k in enumerate(("first paint s", "title by s"))}
    return found


def frames(driver, folder):
    """Frames a second of a page of 5,000 points that plays."""
    path = pl.export_page(run_of(meeting(POINTS, 61), outcome="completed"), folder / "many.html")
    looks(driver, 1000, 700)
    driver.get(path.as_uri())
    return driver.execute_async_script(
        "const done = arguments[0], player = globalThis.player; let count = 0; player.options.seconds = 60;"
        "player.setTime(0); player.play(); const began = performance.now();"
        "const turn = () => { count += 1; const s = (performance.now() - began) / 1000;"
        "if (s > 5) done(count / s); else requestAnimationFrame(turn); }; requestAnimationFrame(turn);"
    )


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = os.getloadavg()[0]
        with served(folder / "store", native="") as site:
            found = {"load": load(site)}
            with opened_browser(folder, LOCAL, network=True) as driver:
                looks(driver)
                driver.get(f"{site.root}/play?token={TOKEN}")
                found["paint"] = paint(site, driver)
                found["frames a second"] = frames(driver, folder)
        found["machine"] = {"cores": os.cpu_count(), "load before": before, "load after": os.getloadavg()[0]}
        found["machine"]["python"] = platform.python_version()
    print(json.dumps(found, indent=2))
    (HERE / "results" / "view.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
