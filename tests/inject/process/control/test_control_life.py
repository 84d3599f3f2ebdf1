"""The socket beside a dump through the life of a program: forks, ends, closed descriptors."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from flame.attach.library.control import Control
from tests.inject.process.control.conftest import Start
from tests.inject.process.control.control_client import (
    ENDED,
    LAUNCHES,
    RANGES,
    ask,
    connect,
    is_answered,
    is_refused,
    kernels,
    socket_path_of,
)
from tests.inject.recorded_program import until
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header, records

pytestmark = pytest.mark.deep

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


def test_children_of_a_program_that_is_asked_meanwhile_end_their_own_dumps(
    start: Start, patient_library: Path
) -> None:
    program = start(RANGES + FORK, library=patient_library)
    program.do("ranges(1)")
    dump = program.heard()
    forked = Event()

    def ask_until_forked() -> int:
        answers = int(is_answered(dump))
        while not forked.is_set():
            answers += is_answered(dump)
        return answers

    with ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(ask_until_forked) for _ in range(2)]
        try:
            program.run("for _ in range(20):\n    if not os.fork(): ranges(5), sys.exit()")
            codes = program.do("[os.wait()[1] for _ in range(20)]")
        finally:
            forked.set()
    assert codes == [0] * 20
    assert all(one.result() for one in asking)
    children = set(program.folder.glob("*.fdump")) - {dump}
    assert [header(one)["state"] for one in children] == [ENDED] * 20
    assert [len(records(one)["range"]) for one in children] == [5] * 20


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
