"""The client of the library's socket, against servers that mean no good."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from flame.attach.library.control import Control, ControlStatus
from tests.support.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="recording is for Linux")

OPENED = b'{"ok":true,"protocol":1,"pid":7,"dump":"/tmp/7-1.fdump","library":"0.1.0"}\n'
STATUS = (
    b'{"ok":true,"pid":7,"dump":"/tmp/7-1.fdump","state":"full","recording":false,"bytes":65536,'
    b'"dropped":3,"python":true,"cupti":false}\n'
)

Answer = Callable[[socket.socket, bytes], None]
Serve = Callable[[Answer], Path]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A file where a dump would be."""
    path = tmp_path / "7-1.fdump"
    path.write_bytes(b"FLAMEDMP")
    return path


@pytest.fixture
def serve(dump: Path) -> Iterator[Serve]:
    """Answers every connection, once it has said a line, by a function."""
    listener = socket.socket(socket.AF_UNIX)

    def listen(answer: Answer) -> Path:
        listener.bind(str(dump.with_suffix(".sock")))
        listener.listen()
        Thread(target=run, args=(answer,), daemon=True).start()
        return dump

    def run(answer: Answer) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    answer(connection, connection.recv(4096))

    yield listen
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture(autouse=True)
def _keeps_no_descriptor() -> Iterator[None]:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    yield
    # The server's thread may still have one of its own.
    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before)  # noqa: PTH208


def sending(reply: bytes, *flags: tuple[str, int]) -> Answer:
    """A reply with descriptors of files that are opened like this."""

    def answer(connection: socket.socket, _: bytes) -> None:
        files = [os.open(path, mode) for path, mode in flags]
        socket.send_fds(connection, [reply], files)
        for file in files:
            os.close(file)

    return answer


def readable(dump: Path) -> tuple[str, int]:
    return str(dump), os.O_RDONLY


def test_a_good_server_is_believed(serve: Serve, dump: Path) -> None:
    heard = []

    def answer(connection: socket.socket, line: bytes) -> None:
        heard.append(line)
        if b"open" in line:
            return sending(OPENED, readable(dump))(connection, line)
        return connection.sendall(STATUS if b"status" in line else b'{"ok":true}\n')

    control = Control.open(serve(answer))
    assert control is not None and control.pid == 7
    descriptor = control.descriptor()
    assert os.pread(descriptor, 8, 0) == b"FLAMEDMP" and not os.get_inheritable(descriptor)
    os.close(descriptor)
    assert control.status() == ControlStatus(True, 7, "full", False, 65536, 3, True, False)
    assert control.flush() and control.stop()
    control.close()
    control.close()
    asked = [f'{{"do":"{what}"}}\n'.encode() for what in ("open", "status", "flush", "stop")]
    assert heard == asked


def test_a_reply_may_come_in_pieces(serve: Serve, dump: Path) -> None:
    def answer(connection: socket.socket, line: bytes) -> None:
        sending(OPENED[:1], readable(dump))(connection, line)
        for byte in OPENED[1:]:
            connection.sendall(bytes([byte]))

    control = Control.open(serve(answer))
    assert control is not None
    control.close()


# What is no socket


def missing(door: Path) -> None:
    assert not door.exists()


def file(door: Path) -> None:
    door.write_bytes(OPENED)


def pipe(door: Path) -> None:
    os.mkfifo(door)


def folder(door: Path) -> None:
    door.mkdir()


def dangling(door: Path) -> None:
    door.symlink_to("nowhere")


def nobody(door: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(door))


@pytest.mark.parametrize("make", [missing, file, pipe, folder, dangling, nobody])
def test_what_does_not_listen_is_not_there(dump: Path, make: Callable[[Path], None]) -> None:
    make(dump.with_suffix(".sock"))
    assert Control.open(dump) is None


def test_no_link_is_followed(serve: Serve, dump: Path, tmp_path: Path) -> None:
    serve(sending(OPENED, readable(dump)))
    other = tmp_path / "8-1.fdump"
    other.with_suffix(".sock").symlink_to(dump.with_suffix(".sock"))
    assert Control.open(other) is None


# What is no reply


REPLIES = {
    "nothing": b"",
    "an empty line": b"\n",
    "no line": OPENED[:-1],
    "no JSON": b"FLAMEDMP\n",
    "another value": b"[1, 2]\n",
    "a refusal": b'{"ok":false,"error":"no"}\n',
    "another protocol": OPENED.replace(b'"protocol":1', b'"protocol":2'),
    "no pid": OPENED.replace(b'"pid":7,', b""),
    "a pid that is none": OPENED.replace(b'"pid":7', b'"pid":"7"'),
    "a deep one": b'{"ok":' + b"[" * 60000 + b"\n",
    "no UTF-8 where it counts": OPENED.replace(b"pid", b"p\xffd"),
    "an endless number": OPENED.replace(b":7", b":" + b"7" * 60000),
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_what_is_no_reply_is_none(serve: Serve, dump: Path, reply: bytes) -> None:
    assert Control.open(serve(sending(reply or b" ", readable(dump)))) is None


def test_a_wrong_status_is_none(serve: Serve, dump: Path) -> None:
    replies = [
        STATUS.replace(b'"full"', b'"fine"'),
        STATUS.replace(b":false,", b":0,"),
        STATUS.replace(b"65536", b"6.5"),
        b'{"ok":true}\n',
    ]
    sent = iter(replies)

    def answer(connection: socket.socket, line: bytes) -> None:
        if b"open" in line:
            return sending(OPENED, readable(dump))(connection, line)
        return connection.sendall(next(sent))

    control = Control.open(serve(answer))
    assert control is not None
    assert [control.status() for _ in replies] == [None] * len(replies)
    control.close()


def silence(connection: socket.socket, _: bytes) -> None:
    connection.recv(1)


def drip(connection: socket.socket, _: bytes) -> None:
    end = time.monotonic() + 2 * PATIENCE
    while time.monotonic() < end:
        connection.sendall(b" ")
        time.sleep(0.1)


def flood(connection: socket.socket, _: bytes) -> None:
    while True:
        connection.sendall(b" " * 65536)


def flood_of_descriptors(connection: socket.socket, _: bytes) -> None:
    with Path(os.devnull).open() as null:
        while True:
            socket.send_fds(connection, [b" "], [null.fileno()] * 8)


@pytest.mark.parametrize("answer", [silence, drip, flood, flood_of_descriptors])
def test_nobody_is_waited_for(serve: Serve, answer: Answer) -> None:
    dump = serve(answer)
    begin = time.monotonic()
    assert Control.open(dump) is None
    assert time.monotonic() - begin < PATIENCE


# What is no dump


BAD_FILES: dict[str, tuple[tuple[str, int], ...]] = {
    "none": (),
    "a device": ((os.devnull, os.O_RDONLY),),
    "a folder": (("/", os.O_RDONLY),),
    "one to write": (("DUMP", os.O_RDWR),),
    "one to write only": (("DUMP", os.O_WRONLY),),
    "a path": (("DUMP", getattr(os, "O_PATH", 0)),),
    "two": (("DUMP", os.O_RDONLY), ("DUMP", os.O_RDONLY)),
    "many": (("DUMP", os.O_RDONLY),) * 100,
}


@pytest.mark.parametrize("files", BAD_FILES.values(), ids=BAD_FILES)
def test_what_is_no_dump_is_not_taken(
    serve: Serve, dump: Path, files: tuple[tuple[str, int], ...]
) -> None:
    opened = [(path.replace("DUMP", str(dump)), mode) for path, mode in files]
    assert Control.open(serve(sending(OPENED, *opened))) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_what_belongs_to_others_is_not_trusted(serve: Serve, dump: Path) -> None:
    door = serve(sending(OPENED, readable(dump))).with_suffix(".sock")
    for part in [dump, *list(dump.relative_to("/tmp").parents)[:-1]]:
        (Path("/tmp") / part).chmod(0o755)
    door.chmod(0o777)
    code = """
import os, sys
from pathlib import Path
from flame.attach.library.control import Control
os.setgid(65534), os.setuid(65534)
print(Control.open(Path(sys.argv[1])) is not None)
"""

    def is_trusted_by_nobody() -> str:
        command = [sys.executable, "-c", code, str(dump)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
        return done.stdout.strip()

    assert stat.S_ISSOCK(door.stat().st_mode)
    # That of root; an answer that comes late is none.
    wait_until(lambda: is_trusted_by_nobody() == "True")
    os.chown(door, 1234, 1234)
    assert is_trusted_by_nobody() == "False"
