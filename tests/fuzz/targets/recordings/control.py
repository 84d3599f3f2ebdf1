"""What a server sends in the place of the library: replies, and descriptors with them."""

from __future__ import annotations

import os
import random
import socket
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

from flame.attach.library.control import Control, ControlStatus, SamplingReply
from tests.fuzz.checks import FoundError, folder, write
from tests.fuzz.mutations import mutate_json
from tests.fuzz.target import Target

OPENED = b'{"ok":true,"protocol":1,"pid":7}\n'
_STATUS = (
    b'{"ok":true,"pid":7,"state":"full","recording":false,"bytes":65536,"dropped":3,'
    b'"python":true,"cupti":false}\n'
)
_MOST_FILES = 12


class _Server:
    """Answers every connection with ``reply``, and with so many descriptors of ``files``."""

    def __init__(self, path: Path) -> None:
        self.reply, self.files = b"", 0
        sent = write("sent", b"FLAMEDMP")
        self._sent = [os.open(sent, os.O_RDONLY) for _ in range(_MOST_FILES)]
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection, suppress(OSError):
                connection.recv(1 << 16)
                socket.send_fds(connection, [self.reply or b"\n"], self._sent[: self.files])


@cache
def _server() -> tuple[_Server, Path]:
    dump = folder() / "1.fdump"
    return _Server(dump.with_suffix(".sock")), dump


def check(data: bytes) -> None:
    server, dump = _server()
    server.files = data[0] % _MOST_FILES if data else 0
    server.reply = data[1:]
    before = _own_descriptors()
    opened = Control.open(dump)
    if opened is not None:
        opened.close()
    _check_replies(Control(dump.with_suffix(".sock"), 7, -1))
    if _own_descriptors() > before:
        raise FoundError("descriptors are left open")


def _check_replies(control: Control) -> None:
    status, sampling = control.status(), control.sample("all")
    if status is not None and not isinstance(status, ControlStatus):
        raise FoundError(repr(status))
    if sampling is not None and not isinstance(sampling, SamplingReply):
        raise FoundError(repr(sampling))


def _own_descriptors() -> int:
    """Descriptors of the file that the server sends, of which it keeps its own."""
    sent = (folder() / "sent").stat()
    return sum(_is_same(entry.name, sent) for entry in Path("/proc/self/fd").iterdir())


def _is_same(entry: str, sent: os.stat_result) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(int(entry)), sent)
    return False


def seeds() -> list[bytes]:
    replies = OPENED, _STATUS, b'{"ok":false,"error":"no CUPTI"}\n', b'{"ok":true,"contexts":2}\n'
    return [bytes([1 + at % 2]) + reply for at, reply in enumerate(replies)]


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Other values in the reply."""
    return data[:1] + mutate_json(data[1:], draw).rstrip(b"\n") + b"\n"


TARGET = Target("control", seeds, check, mutate, 1 << 10)
