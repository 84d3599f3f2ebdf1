"""Serve the app to a browser, by textual-serve on this machine's loopback address."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from secrets import token_urlsafe
from string import Template

from aiohttp import web
from textual_serve.server import Server

from flame.console.terminal import printable
from flame.core.errors import UsageError

HOST = "127.0.0.1"
_FONT_SIZE = 15
_GRACE = 0.5
"""Seconds that apps in open pages have to end when the server does."""


def serve(words: Sequence[str], title: str, port: int) -> int:
    """Serve ``flame WORDS`` without ``--web`` until ctrl+c; every page is an app of its own.

    The address, on stdout, holds a secret: whoever else is on this machine cannot open it, nor can
    other pages in the browser. Raises UsageError if ``port`` (0: any free one) is taken.
    """
    with _listening(port) as listening:
        secret = token_urlsafe(16)
        served = web.Application()
        command = shlex.join([sys.executable, "-m", "flame", *_without_web(words)])
        served.add_subapp(f"/{secret}/", _Served(command, title=title).application())
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


class _Served(Server):
    """Serve by textual-serve, silently, a page that loads nothing from the internet."""

    def application(self) -> web.Application:
        """Make the page, what it loads, and the socket between it and an app."""
        application = web.Application()
        application.router.add_get("/", self.handle_index)
        application.router.add_get("/ws", self.handle_websocket)
        application.router.add_static("/static", self.statics_path)
        return application

    async def handle_index(self, request: web.Request) -> web.Response:
        """Answer with the page."""
        page = Template(Path(__file__).with_name("page.html").read_text("utf-8"))
        text = page.substitute(title=escape(self.title), size=_FONT_SIZE)
        return web.Response(text=text, content_type="text/html")
