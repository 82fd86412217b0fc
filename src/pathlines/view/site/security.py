"""Who may ask the server: those who hold its token, from its own pages, under its own name.

Every request and websocket passes here first. A link with ``?token=…`` is answered by a cookie (SameSite=Strict, not
readable by scripts) and the same address without the token. A loopback server answers only to loopback names, so that
a name of somebody else's that resolves to 127.0.0.1 (DNS rebinding) gets nothing, and an ``Origin`` that is not the
server's own is refused with or without the cookie.
"""

from __future__ import annotations

import html
import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.files import default_root, write_whole

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST = 16
"""Letters of a token that a person chooses for a server that others can reach."""
MOST_BYTES = 64_000_000
"""Of a request: a study file."""
LONGEST_ADDRESS = 16_000
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
"""On every answer."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server there."""
    return host in LOOPBACK or host.startswith("127.")


def kept_token() -> str:
    """This person's token, the same after a restart so that open pages find their server again; a file only they read.

    A store that cannot be written gives a new one each time.
    """
    path = default_root() / "view-token"
    try:
        found = path.read_text().strip() if path.exists() and not path.stat().st_mode & 0o077 else ""
        if len(found) >= SHORTEST and found.isascii():
            return found
        token = secrets.token_urlsafe(24)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, b"")
        path.chmod(0o600)
        path.write_text(token)
        return token
    except OSError:
        return secrets.token_urlsafe(24)


def checked_token(token: str) -> str:
    """A token that a person chose, if it is long enough to be one."""
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or set(token) & set(' ";,\\'):
        raise ArgumentError(f"Option --token takes at least {SHORTEST} letters, digits and signs without spaces.")
    return token


class Guard:
    """ASGI middleware around everything that the server answers."""

    def __init__(self, app: Any, token: str, host: str, port: int) -> None:
        self.app, self.token, self.port = app, token.encode(), port
        self.names = LOOPBACK if is_loopback(host) else None
        self.cookie = f"pathlines_{port}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass it on, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = {k.lower(): v.decode("latin-1") for k, v in scope.get("headers", ())}
        if scope["type"] == "http" and (welcome := self._welcome(scope, headers)) is not None:
            await _answer(send, 200, welcome, [self._cookie()])
            return
        refused = self._refused(scope, headers)
        if refused is None:
            await self.app(scope, _limited(receive), _with_headers(send))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await _answer(send, *refused)

    def _welcome(self, scope: Any, headers: dict[bytes, str]) -> str | None:
        """The page that goes on to the same address without the token in it, for a link with the right one."""
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [v for k, v in pairs if k == "token"]
        if not given or not self._right(given[0]) or self._stranger(headers):
            return None
        rest = urlencode([(k, v) for k, v in pairs if k != "token"])
        path = "/" + scope["path"].lstrip("/")
        target = html.escape(path + (f"?{rest}" if rest else ""), quote=True)
        return _page(f'<meta http-equiv="refresh" content="0;url={target}">', f'<a href="{target}">Pathlines</a>')

    def _refused(self, scope: Any, headers: dict[bytes, str]) -> tuple[int, str] | None:
        if self._stranger(headers):
            return 403, _page("", "This server answers only its own pages, under its own name.")
        if not self._right(_cookie_of(headers.get(b"cookie", ""), self.cookie)):
            return 401, _page("", "This page needs its token: open the link that <code>pathlines view</code> printed.")
        if len(scope.get("query_string", b"")) > LONGEST_ADDRESS:
            return 414, _page("", f"An address may have {LONGEST_ADDRESS} letters.")
        size = headers.get(b"content-length", "0")
        if not size.isdigit() or int(size) > MOST_BYTES:
            return 413, _page("", f"A file may have {MOST_BYTES // 10**6} MB.")
        return None

    def _stranger(self, headers: dict[bytes, str]) -> bool:
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        name = urlsplit(f"//{host}")
        try:
            port = name.port
        except ValueError:
            return True
        if self.names is not None and (name.hostname not in self.names or (port or 80) != self.port):
            return True
        return origin is not None and urlsplit(origin).netloc != host

    def _right(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token)

    def _cookie(self) -> tuple[bytes, bytes]:
        value = f"{self.cookie}={self.token.decode()}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000"
        return b"set-cookie", value.encode()


def _cookie_of(text: str, name: str) -> str:
    try:
        found = SimpleCookie(text).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def _limited(receive: Any) -> Any:
    """What is received, up to the limit: a body need not say how long it is."""
    seen = 0

    async def counted() -> Any:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b"")) if message["type"] == "http.request" else 0
        return {"type": "http.disconnect"} if seen > MOST_BYTES else message

    return counted


def _with_headers(send: Any) -> Any:
    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
        await send(message)

    return sent


def _page(head: str, body: str) -> str:
    look = "font:17px/1.5 system-ui,sans-serif;margin:12vh auto;max-width:34em;padding:0 1em"
    style = f"<style>html{{color-scheme:light dark}}body{{{look}}}</style>"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Pathlines</title>{head}{style}<p>{body}</p></html>"
    )


async def _answer(send: Any, status: int, text: str, more: list[tuple[bytes, bytes]] | None = None) -> None:
    body = text.encode()
    told = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    headers = [*told, (b"cache-control", b"no-store"), *HEADERS, *(more or ())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
