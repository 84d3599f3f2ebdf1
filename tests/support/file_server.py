"""Serve files by HTTP or HTTPS on this machine, as badly as a test wants it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer(ThreadingHTTPServer):
    """Serves `files`: bytes and headers by path; notes what it was asked for, and how.

    Among the headers ``status`` is the answer's; an empty ``Content-Length`` is left out, one that
    is larger than the file has the connection end early. Of what is in `stalled` half is sent, and
    the rest when that is set.
    """

    daemon_threads = True

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.scheme = "https" if tls else "http"
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.files: dict[str, tuple[bytes, dict[str, str]]] = {}
        self.stalled: dict[str, threading.Event] = {}
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []

    def url(self, path: str) -> str:
        """The address of what is at ``path``."""
        return f"{self.scheme}://127.0.0.1:{self.server_port}{path}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no fault of the server."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FileServer

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        self.server.headers.append(dict(self.headers))
        data, headers = self.server.files.get(self.path, (b"none", {"status": "404"}))
        headers = dict(headers)
        self.send_response(int(headers.pop("status", "200")))
        length = headers.pop("Content-Length", str(len(data)))
        if length:
            self.send_header("Content-Length", length)
        else:
            self.close_connection = True
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self._send(data)
            self.close_connection |= length != str(len(data))

    def _send(self, data: bytes) -> None:
        if going_on := self.server.stalled.get(self.path):
            self.wfile.write(data[: len(data) // 2])
            going_on.wait()
            data = data[len(data) // 2 :]
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[FileServer]:
    """Run a server while the block does."""
    with FileServer(tls) as one:
        thread = threading.Thread(target=one.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield one
        finally:
            for event in one.stalled.values():
                event.set()
            one.shutdown()
            thread.join()
