"""What the scripts of the pages fetch: numbers as JSON, or a message in one line; never a traceback."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response

from pathlines.foundation.errors import PathlinesError
from pathlines.view.site.computing import BUG, Answers, OvertakenError
from pathlines.view.site.runs import frames_of
from pathlines.view.site.state import state_of

log = logging.getLogger("pathlines.view")
ANSWERS = Answers()
"""Of this process: one line for all pages."""
CLAIM_ANSWERS = Answers(workers=1, waiting=8)
"""A line of their own for claims, which take seconds: nobody else waits for them."""
CLIENT = "x-pathlines-page"
Asked = dict[str, str]
Prepare = Callable[[Asked], tuple[Any, Callable[[], Any]]]
"""From the words of an address to the checked setting, and what computes its answer."""


def routes(app: FastAPI) -> None:
    """One address for each kind of answer."""
    app.add_api_route("/data/play", _answering(play), methods=["GET"])
    app.add_api_route("/export/play", export, methods=["GET"])


def answer_at(app: FastAPI, name: str, prepare: Prepare, line: Answers = ANSWERS) -> None:
    """Answers of a page's own at ``/data/NAME``: checked first, then computed in the line and kept."""

    async def ask(asked: Asked, client: str) -> bytes:
        setting, compute = prepare(asked)
        return await line.of(name, msgspec.to_builtins(setting), compute, client)

    app.add_api_route(f"/data/{name}", _answering(ask), methods=["GET"])


def _answering(compute: Callable[[Asked, str], Awaitable[bytes]]) -> Any:
    async def answer(request: Request) -> Response:
        client = request.headers.get(CLIENT, "")[:40]
        return await said(lambda: compute(dict(request.query_params), client))

    return answer


async def said(ask: Callable[[], Awaitable[bytes]]) -> Response:
    """The answer, or why there is none, in one line that says nothing of the machine."""
    try:
        return Response(await ask(), media_type="application/json")
    except OvertakenError as error:
        return _message(str(error), 409)
    except PathlinesError as error:
        return _message(" ".join(str(error).split()), 422)
    except Exception:
        log.exception("an answer could not be computed")
        return _message(BUG, 500)


def _message(text: str, status: int) -> Response:
    return Response(json.dumps({"message": text}), status, media_type="application/json")


async def play(asked: Asked, client: str) -> bytes:
    """The frames of a run."""
    state = state_of(asked)
    return await ANSWERS.of("play", msgspec.to_builtins(state), lambda: frames_of(state.checked()), client)


async def export(request: Request) -> Response:
    """The run of an address as one HTML file."""
    from pathlines.view.export import page

    found = await said(lambda: play(dict(request.query_params), ""))
    if found.status_code != 200:
        return found
    text = page(json.loads(bytes(found.body)))
    told = {"content-disposition": 'attachment; filename="pathlines.html"'}
    return Response(text, media_type="text/html; charset=utf-8", headers=told)
