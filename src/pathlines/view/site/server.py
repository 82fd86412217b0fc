"""The server of the pages: one program, on loopback unless somebody insists, behind its token."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from nicegui import ui

from pathlines.foundation.errors import ArgumentError, PathlinesWarning
from pathlines.foundation.precision import enable_float64
from pathlines.view.pages import open_pages
from pathlines.view.site.answers import ANSWERS, CLAIM_ANSWERS, routes
from pathlines.view.site.security import Guard
from pathlines.view.site.warm import warm

LAST_SECONDS = 0.6
"""What the end may take: open connections are cut after it."""


def application(token: str, host: str, port: int, *, warmed: bool = True) -> Guard:
    """The whole server as one ASGI application; ``warmed`` compiles common shapes in the background."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if warmed:
            threading.Thread(target=warm, args=(ANSWERS,), daemon=True).start()
        yield
        _close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    routes(app)
    app.mount("/static", StaticFiles(directory=str(files("pathlines.view") / "static")))
    open_pages(app)
    ui.run_with(app, title="Pathlines", dark=None, tailwind=False, favicon=ICON, show_welcome_message=False,
                gzip_middleware_factory=None, language="en-US", reconnect_timeout=10.0)  # fmt: skip
    return Guard(app, token, host, port)


ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="13" fill="none" '
    'stroke="#0b62a8" stroke-width="2"/><path d="M6 20C12 8 18 26 27 12" fill="none" stroke="#d55e00" '
    'stroke-width="2.5"/><circle cx="27" cy="12" r="3" fill="#d55e00"/></svg>'
)


def bound(host: str, port: int) -> socket.socket:
    """The socket of the server, the next free one where ``port`` is 0; taken ones are an error that names them."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name != "nt":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(128)
    except (OSError, OverflowError) as error:
        found.close()
        why = getattr(error, "strerror", None) or error
        raise ArgumentError(f"No server can listen at {host}:{port} ({why}); --port 0 takes a free port.") from None
    return found


def free_from(host: str, port: int, tries: int = 20) -> socket.socket:
    """The socket of the first free port from there on."""
    for k in range(tries - 1):
        with suppress(ArgumentError):
            return bound(host, port + k)
    return bound(host, 0)


def serve(listening: socket.socket, token: str, host: str, *, warmed: bool = True) -> None:
    """Answer until Ctrl-C, which ends the server within a second."""
    enable_float64()
    warnings.filterwarnings("ignore", category=PathlinesWarning)  # pages show outcomes themselves
    logging.getLogger("nicegui").setLevel(logging.ERROR)
    app = application(token, host, listening.getsockname()[1], warmed=warmed)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, server_header=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)
    except KeyboardInterrupt:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # what is cut off need not be told
        server.should_exit = server.force_exit = True
        thread.join(LAST_SECONDS)
        _close()
        if thread.is_alive() or not ANSWERS.idle:  # a program that is being compiled would hold the end up
            _leave()


def _close() -> None:
    from pathlines.view.site.shelf import ASIDE
    from pathlines.view.site.study_data import SHELF

    SHELF.aside.close()
    ANSWERS.close()
    CLAIM_ANSWERS.close()
    ASIDE.close()


def _leave() -> Any:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
