"""The server of the pages in a process of its own, as `pathlines view` starts it, for tests that ask it over HTTP."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager

TOKEN = "a-token-of-thirty-two-letters-00"
START = (
    "from pathlines.view.site.server import bound, serve; s = bound('127.0.0.1', 0);"
    f"print(s.getsockname()[1], flush=True); serve(s, '{TOKEN}', '127.0.0.1', warmed=False)"
)
SECONDS = 60


class Site:
    """What a test asks the server."""

    def __init__(self, port, pid):
        self.port, self.pid = port, pid
        self.root = f"http://127.0.0.1:{port}"

    def get(self, path, body=None, **headers):
        """(status, text) of a request with the cookie."""
        told = {"Cookie": f"pathlines_{self.port}={TOKEN}", **headers}
        request = urllib.request.Request(self.root + path, data=body, headers=told)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def data(self, name, **words):
        """(status, JSON) of an answer."""
        status, text = self.get(f"/data/{name}?{urllib.parse.urlencode(words)}")
        return status, json.loads(text)


@contextmanager
def served(store, native="off"):
    """The server until the block ends, then Ctrl-C, which must end it; tests compile no native code for it."""
    environment = {**os.environ, "PATHLINES_STORE": str(store), "PATHLINES_NATIVE": native}
    process = subprocess.Popen(
        [sys.executable, "-c", START], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield Site(int(process.stdout.readline()), process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            _, complaints = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 0, complaints
    assert "Traceback" not in complaints, complaints
