"""Clients of the socket beside a dump that keep to nothing: none stops the program or another."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from flame.attach.library.control import Control
from tests.inject.process.control.conftest import Start
from tests.inject.process.control.control_client import (
    ENDED,
    LAUNCHES,
    ask,
    connect,
    is_answered,
    kernels,
    said,
    socket_path_of,
)
from tests.inject.recorded_program import Program, until
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header, records

pytestmark = pytest.mark.deep

BAD_LINES = [
    *(b"", b"{", b'{"do":', b'{"do":"open"', b'{"do":"open"}}', b'{"do":"open","do":"stop"}'),
    *(b'{"do":"stop', b'{"do":1}', b'{"stop":"do"}', b"null", b"\0\0\0", b"\xff\xfe"),
    *(b'{"do":""}', b'{"do":"STOP"}', b'["stop"]', b'"stop"', b"stop", b'{"do":"st\\u006fp"}'),
]


def test_what_it_does_not_understand_it_says(start: Start) -> None:
    program = start()
    with connect(program.heard()) as connection:
        for line in BAD_LINES:
            connection.sendall(line + b"\n")
            answer = said(connection)
            assert answer["ok"] is False and "not understood" in answer["error"]
        connection.sendall(b' { "do" :\t"status" } \r\n')
        assert said(connection)["ok"] is True


def test_many_requests_at_once_are_answered_in_turn(start: Start) -> None:
    program = start()
    with connect(program.heard()) as connection:
        connection.sendall(b'{"do":"status"}\n{"do":"flush"}\n{"do":"what"}\n{"do":"open"}\n')
        answers = [said(connection) for _ in range(4)]
    assert [len(answer) for answer in answers] == [9, 1, 2, 5]


def silent(dump: Path) -> Iterator[socket.socket]:
    for _ in range(8):
        yield connect(dump)


def half_a_line(dump: Path) -> Iterator[socket.socket]:
    for _ in range(8):
        connection = connect(dump)
        connection.sendall(b'{"do":"stop"')
        yield connection


def endless_line(dump: Path) -> Iterator[socket.socket]:
    connection = connect(dump)
    connection.sendall(b"x" * 4096)
    yield connection


def no_reader(dump: Path) -> Iterator[socket.socket]:
    """It asks and asks, and takes no answer."""
    connection = connect(dump)
    connection.settimeout(PATIENCE)
    with pytest.raises(ConnectionError):
        for _ in range(100_000):
            connection.sendall(b'{"do":"status"}\n')
    yield connection


def gone(dump: Path) -> Iterator[socket.socket]:
    for rest in (b"", b'{"do":"open"}\n' * 20, b'{"do":"flush"}\n', b"\n" * 500):
        with connect(dump) as connection:
            connection.sendall(rest)
    yield socket.socket(socket.AF_UNIX)


def with_descriptors(dump: Path) -> Iterator[socket.socket]:
    """What it is given it does not take."""
    connection = connect(dump)
    with Path(os.devnull).open() as file:
        socket.send_fds(connection, [b'{"do":"status"}\n'], [file.fileno()] * 20)
    yield connection


BAD_CLIENTS = (silent, half_a_line, endless_line, no_reader, gone, with_descriptors)


@pytest.mark.parametrize("bad", BAD_CLIENTS, ids=lambda bad: bad.__name__)
def test_a_bad_client_keeps_nobody_waiting(
    start: Start, bad: Callable[[Path], Iterator[socket.socket]]
) -> None:
    program = start()
    dump, descriptors = program.heard(), descriptors_of(program)
    for _ in range(3):
        with ExitStack() as stack:
            for connection in bad(dump):
                stack.enter_context(connection)
            begin = time.monotonic()
            assert program.do(LAUNCHES) == 100
            assert is_answered(dump)
            assert time.monotonic() - begin < PATIENCE
    until(lambda: descriptors_of(program) <= descriptors)
    assert program.end() == 0
    assert header(dump)["state"] == ENDED
    assert len(records(dump)["launch"]) == kernels(dump) == 20 + 300


def descriptors_of(program: Program) -> int:
    return len(os.listdir(f"/proc/{program.pid}/fd"))  # noqa: PTH208


def test_whom_it_hears_nothing_of_it_lets_go(start: Start) -> None:
    program = start(FLAME_FLUSH_MS="60000")
    with connect(program.heard()) as connection:
        connection.sendall(b'{"do":')
        assert connection.recv(1) == b""


def test_twenty_clients_at_once(start: Start) -> None:
    program = start()
    program.heard()

    def look(_: int) -> int:
        control = until(lambda: Control.open(program.dump()))
        with closing(control):
            return sum(control.status() is not None for _ in range(10))

    with ThreadPoolExecutor(20) as pool:
        assert sum(pool.map(look, range(20))) == 200


def test_a_program_without_free_descriptors_goes_on(start: Start) -> None:
    program = start()
    program.heard()
    program.run("import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (0, 4096))")
    with connect(program.dump()) as connection:
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            ask(connection, "status")
        used = cpu_time(program)
        time.sleep(1)
        assert cpu_time(program) - used < 0.3  # it does not try all the time
        program.run("resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))")
        connection.settimeout(PATIENCE)
        assert said(connection)["ok"] is True
    assert program.do(LAUNCHES) == 100


def cpu_time(program: Program) -> float:
    """Seconds, of all its threads."""
    fields = Path(f"/proc/{program.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_is_sent_away(start: Start) -> None:
    program = start()
    program.heard()
    # As if somebody had opened it to all: then it is up to the library.
    socket_path = socket_path_of(program.dump())
    for folder in list(socket_path.relative_to("/tmp").parents)[:-1]:
        (Path("/tmp") / folder).chmod(0o755)
    socket_path.chmod(0o666)
    code = """
import os, socket, sys
connection = socket.socket(socket.AF_UNIX)
os.setgid(65534), os.setuid(65534)
connection.connect(sys.argv[1])
try:
    connection.sendall(b'{"do":"open"}\\n')
    print(connection.recv(100))
except OSError as error:
    print(b"")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(socket_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.stdout, done.stderr) == ("b''\n", "")
    assert is_answered(program.dump())
