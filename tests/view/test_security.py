"""Who gets in: only holders of the token, under the server's own name, from its own pages."""

import asyncio

import pytest

pytest.importorskip("nicegui")

from pathlines.foundation.errors import ArgumentError
from pathlines.view.site.security import MOST_BYTES, Guard, checked_token, is_loopback, kept_token

TOKEN = "a-token-of-thirty-two-letters-00"


async def inside(scope, receive, send):
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside %d" % size})


def answer(kind="http", host="127.0.0.1:8477", query="", cookie="", bind="127.0.0.1", body=(b"",), **headers):
    """What the guard sends for a request."""
    told = {"host": host, **{k.replace("_", "-"): v for k, v in headers.items()}}
    told |= {"cookie": cookie} if cookie else {}
    scope = {"type": kind, "path": "/play", "query_string": query.encode(), "method": "GET"}
    scope["headers"] = [(k.encode(), v.encode()) for k, v in told.items()]
    parts = [{"type": "http.request", "body": b, "more_body": k < len(body) - 1} for k, b in enumerate(body)]
    sent = []

    async def receive():
        return parts.pop(0) if kind == "http" else {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    asyncio.run(Guard(inside, TOKEN, bind, 8477)(scope, receive, send))
    return sent


GOOD = f"pathlines_8477={TOKEN}"


def status(**how):
    return answer(**how)[0]["status"]


def test_without_the_token_there_is_nothing_and_with_the_cookie_everything():
    assert status() == 401
    assert status(cookie="pathlines_8477=" + TOKEN[:-1]) == status(cookie="pathlines_1=" + TOKEN) == 401
    assert answer(cookie=GOOD)[1]["body"] == b"inside 0"


def test_the_link_gives_a_strict_cookie_and_the_address_without_the_token():
    start, body = answer(query=f"model=sa&token={TOKEN}&beta=9")
    cookie = dict(start["headers"])[b"set-cookie"].decode()
    assert all(word in cookie for word in (GOOD, "HttpOnly", "SameSite=Strict"))
    assert b"/play?model=sa&amp;beta=9" in body["body"]
    assert TOKEN.encode() not in body["body"]
    assert status(query="token=wrong") == 401
    assert status(query="token=" + TOKEN + "é".encode().decode("latin-1")) == 401


def test_the_address_that_a_link_goes_on_to_is_escaped_and_stays_here():
    body = answer(query=f'token={TOKEN}&x="><script>')[1]["body"]
    assert b"<script>" not in body


@pytest.mark.parametrize("host", ["evil.example:8477", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:8477", ""])
def test_another_name_for_this_machine_is_refused_though_the_cookie_is_right(host):
    assert status(host=host, cookie=GOOD) == 403
    assert status(host=host, query=f"token={TOKEN}") == 403


@pytest.mark.parametrize("host", ["localhost:8477", "[::1]:8477", "127.0.0.1:8477"])
def test_all_loopback_names_are_this_machine(host):
    assert status(host=host, cookie=GOOD) == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost:8477"])
def test_other_pages_are_refused_even_with_the_cookie(origin):
    assert status(cookie=GOOD, origin=origin) == 403
    assert answer("websocket", cookie=GOOD, origin=origin)[-1] == {"type": "websocket.close", "code": 1008}


def test_websockets_need_the_cookie_too():
    assert answer("websocket")[-1]["type"] == "websocket.close"
    assert answer("websocket", cookie=GOOD, origin="http://127.0.0.1:8477")[-1]["type"] == "websocket.accept"


def test_a_server_for_others_answers_to_any_name_but_not_to_other_origins():
    assert status(host="lab.example:80", bind="0.0.0.0", cookie=GOOD) == 200
    assert status(host="lab.example:80", bind="0.0.0.0") == 401
    assert status(host="lab.example:80", bind="0.0.0.0", cookie=GOOD, origin="http://evil.example") == 403


def test_bodies_are_limited_by_what_they_say_and_by_what_comes():
    assert status(cookie=GOOD, content_length=str(MOST_BYTES + 1)) == 413
    assert status(cookie=GOOD, content_length="-1") == status(cookie=GOOD, content_length="x") == 413
    piece = b"x" * (MOST_BYTES // 4)
    assert int(answer(cookie=GOOD, body=[piece] * 6)[1]["body"].split()[1]) <= MOST_BYTES
    assert status(cookie=GOOD, query="x" * 20_000) == 414


def test_answers_carry_the_headers_that_keep_others_out():
    headers = dict(answer(cookie=GOOD)[0]["headers"])
    assert headers[b"x-frame-options"] == b"DENY"
    assert headers[b"x-content-type-options"] == b"nosniff"


def test_the_kept_token_survives_a_restart_and_is_for_its_owner_only(results_folder):
    first = kept_token()
    assert kept_token() == first and len(first) >= 32
    path = results_folder / "view-token"
    assert path.stat().st_mode & 0o077 == 0
    path.chmod(0o644)
    assert kept_token() != first


@pytest.mark.parametrize(
    "token", ["short", "with a space inside it", 'quote"quote"quote"', "é" * 20, "line\nline\nline\nline"]
)
def test_own_tokens_are_long_and_plain(token):
    with pytest.raises(ArgumentError):
        checked_token(token)
    assert checked_token(TOKEN) == TOKEN


def test_loopback_is_told_from_other_hosts():
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "127.8.8.8")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.2", "example.org")))
