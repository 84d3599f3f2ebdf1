"""Serve the app to a browser, by textual-serve on this machine's loopback address."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Sequence
from html import escape
from pathlib import Path
from secrets import token_urlsafe
from string import Template

from aiohttp import WSMsgType, web
from textual_serve.server import Server, to_int

from flame.core.errors import UsageError
from flame.core.external import flame_command
from flame.core.shown_text import printable
from flame.web.app_process import AppProcess
from flame.web.protection import add_headers, content_security_policy, refuse_strangers

HOST = "127.0.0.1"
MOST_PAGES = 8
"""Open pages: each is a process with the whole trace."""
_FONT_SIZE = 15
_HEARTBEAT = 15.0
_LARGEST_MESSAGE = 1 << 20
"""Bytes: what a person pastes."""
_GRACE = 0.5
"""Seconds that apps in open pages have to end when the server does."""
_FULL = f"{MOST_PAGES} pages of this trace are open: close one, then reload this page"
_SIZE = (80, 24)


def serve(words: Sequence[str], title: str, port: int) -> int:
    """Serve ``flame WORDS`` without ``--web`` until ctrl+c; every page is an app of its own.

    The address, on stdout, holds a secret: whoever else is on this machine cannot open it, nor can
    other pages in the browser. Raises UsageError if ``port`` (0: any free one) is taken.
    """
    with _listening(port) as listening:
        secret = token_urlsafe(16)
        served = web.Application(middlewares=[refuse_strangers])
        served.on_response_prepare.append(add_headers)
        command = flame_command(*_without_web(words))
        served.add_subapp(f"/{secret}/", _AppServer(command, title).application())
        url = f"http://{HOST}:{listening.getsockname()[1]}/{secret}/"
        print(f"serving {printable(title)} at {url}\nctrl+c stops", flush=True)
        web.run_app(served, sock=listening, print=None, access_log=None, shutdown_timeout=_GRACE)
    return 0


def _without_web(words: Sequence[str]) -> list[str]:
    """``words`` without ``--web`` and ``--port``."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            return [*kept, word, *rest]
        if word == "--port":
            next(rest)
        elif word != "--web" and not word.startswith("--port="):
            kept.append(word)
    return kept


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise UsageError(f"--port {port}: {reason}; --port 0 takes a free one") from None


class _AppServer(Server):
    """Serve by textual-serve, silently, a page that loads nothing from the internet."""

    def __init__(self, command: Sequence[str], title: str) -> None:
        super().__init__("", title=title)
        self._words = command
        self._pages = 0

    def application(self) -> web.Application:
        """Make the page, what it loads, and the socket between it and an app."""
        application = web.Application()
        application.router.add_get("/", self.handle_index)
        application.router.add_get("/ws", self.handle_websocket)
        application.router.add_static("/static", self.statics_path)
        return application

    async def handle_index(self, request: web.Request) -> web.Response:
        """Answer with the page."""
        if self._pages >= MOST_PAGES:
            raise web.HTTPServiceUnavailable(text=_FULL)
        nonce = token_urlsafe(16)
        page = Template(Path(__file__).with_name("page.html").read_text("utf-8"))
        text = page.substitute(title=escape(self.title), size=_FONT_SIZE, nonce=nonce)
        headers = {"Content-Security-Policy": content_security_policy(nonce)}
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run an app for the page that connects, until one of them ends."""
        if self._pages >= MOST_PAGES:
            raise web.HTTPServiceUnavailable(text=_FULL)
        self._pages += 1
        try:
            return await self._run_page(request)
        finally:
            self._pages -= 1

    async def _run_page(self, request: web.Request) -> web.WebSocketResponse:
        connection = web.WebSocketResponse(heartbeat=_HEARTBEAT, max_msg_size=_LARGEST_MESSAGE)
        await connection.prepare(request)
        app = AppProcess(self._words, connection, self.download_manager)
        await app.start(*_size_of(request))
        try:
            await _hand_on_messages(connection, app)
        except asyncio.CancelledError:
            await connection.close()
        finally:
            await app.stop()
        return connection


def _size_of(request: web.Request) -> tuple[int, int]:
    """Columns and rows that the page asks for."""
    columns, rows = _SIZE
    asked = request.query
    return to_int(asked.get("width", ""), columns), to_int(asked.get("height", ""), rows)


async def _hand_on_messages(connection: web.WebSocketResponse, app: AppProcess) -> None:
    """Hand what is typed, and the terminal's size, from the page to ``app``.

    What a page of flame never sends ends the connection.
    """
    async for message in connection:
        if message.type != WSMsgType.TEXT:
            continue
        try:
            content = json.loads(message.data)
        except ValueError:
            return
        match content:
            case ["stdin", str(typed)]:
                await app.send_bytes(typed.encode("utf-8", "replace"))
            case ["resize", {"width": int(columns), "height": int(rows)}]:
                await app.set_terminal_size(columns, rows)
            case ["ping", data]:
                await connection.send_json(["pong", data])
            case ["blur", *_]:
                await app.blur()
            case ["focus", *_]:
                await app.focus()
            case _:
                return
