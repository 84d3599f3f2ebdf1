"""The socket beside a dump: what it answers, and what it does when it is asked."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from flame.attach.library.control import Control
from tests.inject.process.control.conftest import Start
from tests.inject.process.control.control_client import (
    ENDED,
    LAUNCHES,
    RANGES,
    STOPPED,
    ask,
    connect,
    is_answered,
    kernels,
    socket_path_of,
)
from tests.inject.recorded_program import until
from tests.support.writers.fdumprecords import header, meta, records

pytestmark = pytest.mark.deep


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
