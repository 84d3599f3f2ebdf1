"""Clients of the socket beside a dump, and what the programs do that they are clients of."""

from __future__ import annotations

import json
import os
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

from flame.attach.library.control import Control
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import records

ENDED, STOPPED = 1, 2
LAUNCHES = "[launch(gemm) for _ in range(100)].count(None) + (call('cuCtxSynchronize') or 0)"
"""Runs a hundred kernels, and says so."""
RANGES = """
import nvtx

def ranges(count):
    for _ in range(count):
        with nvtx.annotate("step"):
            pass
    return count
"""


def kernels(dump: Path) -> int:
    return len(records(dump)["kernel"])


def socket_path_of(dump: Path) -> Path:
    return dump.with_suffix(".sock")


def connect(dump: Path) -> socket.socket:
    """A client that need not keep to anything."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE)
    # An address is short; the folders of tests may be deep.
    folder = os.open(dump.parent, os.O_PATH)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{socket_path_of(dump).name}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection


def is_refused(dump: Path) -> bool:
    try:
        connect(dump).close()
    except ConnectionRefusedError:
        return True
    return False


def said(connection: socket.socket) -> dict[str, Any]:
    """The next line, which is short."""
    line = b""
    while not line.endswith(b"\n"):
        part = connection.recv(1)
        assert part, "the connection has ended"
        line += part
    answer: dict[str, Any] = json.loads(line)
    return answer


def ask(connection: socket.socket, what: str) -> dict[str, Any]:
    connection.sendall(json.dumps({"do": what}).encode() + b"\n")
    return said(connection)


def is_answered(dump: Path) -> bool:
    control = Control.open(dump)
    if control is None:
        return False
    with closing(control):
        return control.status() is not None
