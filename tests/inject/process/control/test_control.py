"""The socket beside a dump: what it answers, to whom, and that nothing it hears stops a program."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from flame.attach.library.control import Control
from tests.cli.programs import KERNELS
from tests.inject.recorded_program import Program, until
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header, meta, records

pytestmark = pytest.mark.deep

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
# No socket, as in a sandbox: of the system call's number, if it is that, EPERM comes.
SANDBOX = """
import ctypes, platform, struct
numbers = {"x86_64": (41, 53), "aarch64": (198, 199)}[platform.machine()]
load, equal, reply = 0x20, 0x15, 0x06
steps = [(load, 0, 0, 0), (equal, 1, 0, numbers[0]), (equal, 0, 1, numbers[1]),
         (reply, 0, 0, 0x00050001), (reply, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.create_string_buffer(program)) == 0, ctypes.get_errno()
"""

Start = Callable[..., Program]


@pytest.fixture
def start(injected_env: Callable[..., dict[str, str]], tmp_path: Path) -> Iterator[Start]:
    """Starts a program that launches on the double, or does what ``script`` says."""
    with ExitStack() as stack:

        def run(
            script: str = KERNELS, folder: Path = tmp_path / "dumps", **more: str | Path
        ) -> Program:
            return stack.enter_context(Program(script, injected_env(folder, **more)))

        yield run


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


# What it answers


def test_the_dump_can_be_had_for_reading_only(start: Start) -> None:
    program = start()
    with closing(program.control()) as control:
        assert control.pid == program.pid
        dump = control.descriptor()
        assert os.path.samestat(os.fstat(dump), program.dump().stat())
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.write(dump, b"x")
        assert not os.get_inheritable(dump)
        os.close(dump)


def test_open_says_what_it_is(start: Start) -> None:
    program = start()
    dump = program.heard()
    with connect(dump) as connection:
        answer = ask(connection, "open")
    assert (answer["ok"], answer["protocol"]) == (True, 1)
    assert (answer["pid"], answer["dump"]) == (program.pid, str(dump))
    assert [answer["library"]] == meta(dump)["library"]


def test_a_dump_that_was_removed_can_still_be_had(start: Start) -> None:
    program = start()
    dump = program.heard()
    dump.unlink()
    control = Control.open(dump)
    assert control is not None
    descriptor = control.descriptor()
    assert os.pread(descriptor, 8, 0) == b"FLAMEDMP"
    os.close(descriptor)
    control.close()


def test_status_says_how_it_is_doing(start: Start) -> None:
    program = start(FLAME_MAX_MB="1")
    with closing(program.control()) as control:
        status = control.status()
        assert status is not None
        assert (status.state, status.recording, status.dropped) == ("recording", True, 0)
        assert status.python and status.cupti and status.bytes > 1 << 16
        program.do(f"[{LAUNCHES} for _ in range(200)] and 0")
        until(lambda: (now := control.status()) and now.state == "full")
        status = control.status()
        assert status is not None and not status.recording and status.dropped > 0


def test_ranges_alone_are_recorded_too(start: Start) -> None:
    program = start(RANGES)
    program.do("ranges(1)")
    with closing(program.control()) as control:
        status = control.status()
        assert status is not None and not status.cupti
        assert program.do("ranges(10)") == 10
        assert control.stop()
    assert program.do("ranges(10)") == 10
    assert len(records(program.dump())["range"]) == 11


def test_a_flush_brings_what_has_run(start: Start) -> None:
    program = start(FLAME_FLUSH_MS="60000")
    with closing(program.control()) as control:
        program.do(LAUNCHES)
        assert kernels(program.dump()) == 0
        assert control.flush()
        assert kernels(program.dump()) == 120


def test_a_stop_ends_the_recording_and_not_the_program(start: Start) -> None:
    program = start()
    dump = program.heard()
    with closing(program.control()) as control:
        assert control.stop()
        head = header(dump)
        assert (head["state"], head["flags"], head["tail"]) == (
            *(ENDED, STOPPED),
            dump.stat().st_size,
        )
        assert not control.stop() and control.status() is None
    assert not socket_path_of(dump).exists()
    assert program.do(LAUNCHES) == 100
    assert kernels(dump) == 20
    assert program.end() == 0
    assert header(dump) == head


def test_the_socket_goes_with_the_recording(start: Start) -> None:
    program = start()
    dump = program.heard()
    assert oct(socket_path_of(dump).stat().st_mode & 0o777) == "0o600"
    assert program.end() == 0
    assert header(dump)["state"] == ENDED
    assert list(program.folder.iterdir()) == [dump]


def test_a_path_may_be_longer_than_an_address(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 200)
    folder.mkdir()
    assert is_answered(start(folder=folder).heard())


def test_a_path_may_have_any_name(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / 'a"b\\c\n\x1b[31m'
    folder.mkdir()
    program = start(folder=folder)
    with connect(program.heard()) as connection:
        assert ask(connection, "status")["dump"] == str(program.dump())


# Clients that do not keep to it


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
    for folder in socket_path.relative_to("/tmp").parents:
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


# The life of the program


FORK = """
def fork():
    pid = os.fork()
    if not pid:
        signal.pause()
    return pid

def fork_and_record():
    pid = os.fork()
    if not pid:
        ranges(5)
        signal.pause()
    return pid

import os, signal
"""


def test_a_child_that_records_has_a_socket_of_its_own(start: Start) -> None:
    program = start(RANGES + FORK)
    program.do("ranges(1)")
    program.heard()
    child = program.do("fork_and_record()")
    until(lambda: list(program.folder.glob(f"{child}-*.fdump")))
    with closing(program.control(child)) as control:
        assert control.pid == child
        until(lambda: len(records(program.dump(child))["range"]) == 5)
        assert control.stop()
    assert len(records(program.dump(child))["range"]) == 5
    assert is_answered(program.dump())
    os.kill(child, signal.SIGKILL)


def test_a_child_that_does_not_record_leaves_the_socket_alone(start: Start) -> None:
    program = start(RANGES + FORK)
    program.do("ranges(1)")
    dump = program.heard()
    child = program.do("fork()")
    assert is_answered(dump)
    program.process.kill()
    program.process.wait()
    # The child has none of it: nobody waits for an answer from a socket that it holds.
    until(lambda: is_refused(dump))
    assert Control.open(dump) is None
    os.kill(child, signal.SIGKILL)


def test_a_client_sees_the_end_of_the_parent_and_not_of_its_children(start: Start) -> None:
    program = start(RANGES + FORK)
    program.do("ranges(1)")
    with connect(program.heard()) as connection:
        assert ask(connection, "status")["ok"]
        child = program.do("fork()")
        program.process.kill()
        assert connection.recv(1) == b""
    os.kill(child, signal.SIGKILL)


def test_a_child_that_ends_leaves_the_socket_alone(start: Start) -> None:
    program = start(RANGES + FORK)
    program.do("ranges(1)")
    program.heard()
    program.run("if not os.fork(): sys.exit()")
    program.run("os.wait()")
    assert is_answered(program.dump())


def test_a_program_that_becomes_another_leaves_nobody_waiting(start: Start) -> None:
    program = start()
    dump = program.heard()
    program.say("__import__('os').execlp('sleep', 'sleep', '60')")
    until(lambda: Path(f"/proc/{program.pid}/comm").read_text() == "sleep\n")
    assert Control.open(dump) is None
    assert socket_path_of(dump).exists()


def test_a_killed_program_leaves_nobody_waiting(start: Start) -> None:
    program = start()
    dump = program.heard()
    program.process.kill()
    program.process.wait()
    assert Control.open(dump) is None


@pytest.mark.parametrize("first", [3, 128])
def test_a_daemon_that_closes_all_descriptors_is_still_heard(
    start: Start, patient_library: Path, first: int
) -> None:
    program = start(FLAME_FLUSH_MS="20", library=patient_library)
    dump = program.heard()
    with connect(dump) as connection:
        assert ask(connection, "status")["ok"]
        program.run(f"import os; os.closerange({first}, 4096)")
        connection.settimeout(PATIENCE)
        with pytest.raises((ConnectionError, AssertionError)):
            ask(connection, "status")
    until(lambda: is_answered(dump))
    assert program.do(LAUNCHES) == 100
    assert program.end() == 0  # without waiting for the library
    assert header(dump)["state"] == ENDED
    assert list(program.folder.iterdir()) == [dump]


def test_its_numbers_may_be_used_by_others(start: Start, tmp_path: Path) -> None:
    program = start()
    program.heard()
    mine = tmp_path / "mine.txt"
    program.run(f"""
import os
file = os.open({str(mine)!r}, os.O_RDWR | os.O_CREAT)
for number in range(128, 140):
    os.dup2(file, number)
""")
    assert program.do(LAUNCHES) == 100
    until(lambda: is_answered(program.dump()))
    dump = program.dump()
    assert (
        program.do(
            "[os.fstat(number).st_ino == os.fstat(file).st_ino"
            " for number in range(128, 140)].count(False)"
        )
        == 0
    )
    assert program.end() == 0
    assert mine.read_bytes() == b""
    assert kernels(dump) == 120


def test_what_others_put_in_its_place_stays(start: Start) -> None:
    program = start()
    dump = program.heard()
    socket_path = socket_path_of(dump)
    socket_path.unlink()
    socket_path.write_text("mine")
    assert Control.open(dump) is None
    assert program.end() == 0
    assert socket_path.read_text() == "mine"


def test_a_dump_that_is_cut_off_ends_no_program(start: Start) -> None:
    program = start(FLAME_FLUSH_MS="60000")
    dump = program.heard()
    os.truncate(dump, 0)
    with connect(dump) as connection:
        answer = ask(connection, "status")  # the first who looks into it is not the program
        assert (answer["state"], answer["recording"]) == ("ended", False)
    assert program.do(LAUNCHES) == 100
    assert program.end() == 0


def test_without_sockets_there_is_still_a_recording(start: Start) -> None:
    program = start(SANDBOX + RANGES)
    assert program.do("ranges(1000)") == 1000
    assert program.end() == 0
    (dump,) = program.folder.iterdir()
    assert header(dump)["state"] == ENDED
    assert len(records(dump)["range"]) == 1000
