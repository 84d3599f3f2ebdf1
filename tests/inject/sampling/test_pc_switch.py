"""PC sampling that begins and ends as the program runs: no sample is lost, no cubin missed."""

from __future__ import annotations

import json
import os
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from flame.attach.library.control import SamplingReply
from tests.inject.conftest import small_file_system
from tests.inject.recorded_program import Program, until
from tests.inject.sampling.sampled_program import (
    PER_RUN,
    SCRIPT,
    Start,
    begin,
    found,
    notes,
    switch,
    told,
)
from tests.inject.sampling.sampled_program import start as start
from tests.inject.scenes import ENDED
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header, records, text

BAD_MODES = ["on", "", "continuous:4", "serialized:32", "continuous:", "off:5", "CONTINUOUS"]
STALL_REASON = 6


def saved(program: Program) -> list[Path]:
    return sorted(program.folder.glob("cubins/*"))


def test_samples_begin_and_end(start: Start, tmp_path: Path) -> None:
    program = start()
    program.do("work(5)")
    assert not found(program)
    begin(program)
    program.do("work(7)")
    assert switch(program, "off") == SamplingReply(ok=True)
    assert found(program).total() == 7 * PER_RUN  # they do not wait for the end
    program.do("work(3)")
    begin(program)
    program.do("work(2)")
    assert program.end() == 0
    assert found(program) == told(program, tmp_path)
    assert found(program).total() == 9 * PER_RUN
    assert len(records(program.dump())["kernel"]) == 20 + 17
    assert header(program.dump())["dropped"] == 0 and not notes(program)


def test_the_mode_can_change(start: Start, tmp_path: Path) -> None:
    program = start(FLAME_PC="continuous:20")
    program.do("work(4)")
    begin(program, "serialized:9")
    program.do("work(6)")
    begin(program, "serialized:9")
    program.do("work(1)")
    begin(program, "continuous")
    program.do("work(2)")
    assert program.end() == 0
    assert found(program) == told(program, tmp_path)
    exact = Counter({key: n for key, n in found(program).items() if key[2]})
    assert exact.total() == 7 * PER_RUN
    kernels = set(records(program.dump())["kernel"]["correlation"].tolist())
    assert len({key[2] for key in exact}) == 7 and {key[2] for key in exact} <= kernels


def test_what_was_asked_for_at_the_start_can_end(start: Start) -> None:
    program = start(FLAME_PC="serialized")
    program.do("work(4)")
    assert switch(program, "off").ok
    before = found(program)
    program.do("work(4)")
    assert program.end() == 0
    assert found(program) == before


def test_reasons_have_names_once_it_begins(start: Start) -> None:
    program = start()
    program.do("work(1)")
    begin(program)
    of = records(program.dump())
    names = of["name"][of["name"]["kind"] == STALL_REASON]
    assert "smsp__pcsamp_warps_issue_stalled_barrier" in [
        text(of, int(number)) for number in names["text"]
    ]


def test_other_contexts_are_sampled_too(start: Start, tmp_path: Path) -> None:
    program = start()
    program.do("in_a_context(3)")
    begin(program)
    program.do("in_a_context(5)")
    program.do("work(2)")
    assert program.end() == 0
    assert found(program) == told(program, tmp_path)
    assert found(program).total() == 7 * PER_RUN


@pytest.mark.deep
def test_cupti_that_does_not_come_back_holds_up_nobody(start: Start) -> None:
    program = start(FAKE_CUPTI="pc_hang")
    program.do("work(1)")
    reply = switch(program, "continuous")
    assert not reply.ok and "CUPTI has not come back" in reply.error
    with closing(program.control()) as control:
        status = control.status()
        assert status is not None and status.recording
        assert not control.flush()
    assert not switch(program, "off").ok
    program.do("work(2)")
    assert program.end() == 0
    assert header(program.dump())["state"] == ENDED
    assert len(records(program.dump())["launch"]) == 20 + 3
    assert "did not come back from switching PC sampling" in notes(program)[-1]


# Cubins


def test_cubins_that_were_loaded_before_are_saved_when_it_begins(start: Start) -> None:
    program = start()
    program.do("work(1)")
    assert not saved(program)
    begin(program)
    assert len(saved(program)) == 2  # that of the first lines of the script, and of these
    of = records(program.dump())
    modules = of["module"][["crc", "hash"]].tolist()
    paths = {(row["crc"], row["hash"]): int(row["path"]) for row in of["module"] if row["path"]}
    assert set(modules) == set(paths)
    for (crc, content), path in paths.items():
        assert text(of, path) == f"cubins/{crc:016x}-{content:016x}.cubin"
    images = [path.read_bytes() for path in saved(program)]
    assert all(image.startswith(b"flame-fake 1\nkernel gemm ") for image in images)
    sizes = {f"{row['crc']:016x}-{row['hash']:016x}": int(row["size"]) for row in of["module"]}
    assert {p.stem: p.stat().st_size for p in saved(program)} == sizes
    lives = of["module"][["module", "context", "time"]].tolist()
    assert len(set(lives)) * 2 == len(lives), "a module was loaded once, whenever it was saved"


def test_cubins_are_saved_whenever_they_are_loaded(start: Start) -> None:
    program = start()
    begin(program)
    program.do("loaded(b'# while it is on') and 0")
    assert len(saved(program)) == 3
    assert switch(program, "off").ok
    program.do("loaded(b'# while it is off') and 0")
    program.do("loaded(b'# while it is off') and 0")
    assert len(saved(program)) == 3
    begin(program)
    assert len(saved(program)) == 4
    assert not notes(program)


def test_cubins_are_saved_nowhere_else(start: Start, tmp_path: Path) -> None:
    program = start(FLAME_PC="continuous")
    (tmp_path / "elsewhere").mkdir()
    program.folder.rename(tmp_path / "moved")
    program.folder.symlink_to(tmp_path / "elsewhere")
    program.do("loaded(b'# somewhere') and 0")
    assert program.end() == 0
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_cubins_are_not_saved_where_another_user_could_change_them(start: Start) -> None:
    program = start()
    program.heard()
    (program.folder / "cubins").mkdir()
    os.chown(program.folder / "cubins", 64001, 64001)
    begin(program)
    program.do("loaded(b'# while it is on') and 0")
    assert not saved(program)


def test_what_was_not_kept_is_told(start: Start) -> None:
    program = start(FLAME_MAX_MB="1")
    program.do("loaded(b'#' * (1 << 20)) and 0")
    begin(program)
    assert len(saved(program)) == 2
    (note,) = notes(program)
    assert note.startswith("some cubins that were loaded before PC sampling began could not be")


@pytest.mark.parametrize("mode", ["off", "continuous"])
def test_a_disk_that_is_nearly_full_is_left_to_the_dump(
    mode: str, start: Start, tmp_path: Path
) -> None:
    with small_file_system(tmp_path / "dumps", 24):
        program = start(FLAME_PC=mode)
        for number in range(3):
            program.do(f"loaded(b'# {number}' + b'#' * (8 << 20)) and 0")
        begin(program)
        assert program.do("work(3)") == 3
        assert program.end() == 0
        assert found(program) == told(program, tmp_path)
        assert not header(program.dump())["flags"]
        assert not saved(program) and len(notes(program)) == 1


def test_a_limit_of_file_sizes_ends_no_program(start: Start) -> None:
    program = start()
    program.run("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 21, 1 << 21))")
    program.do("loaded(b'#' * (1 << 21)) and 0")
    begin(program)
    program.do("loaded(b'!' and b'#' * ((1 << 21) + 1)) and 0")
    assert program.do("work(2)") == 2
    assert len(saved(program)) == 2 and len(notes(program)) == 2


def test_a_program_that_closes_all_descriptors_goes_on(start: Start) -> None:
    program = start()
    program.run("os.closerange(3, 4096)")
    program.do("loaded(b'# later') and 0")
    begin(program)
    program.do("work(3)")
    program.do("loaded(b'# now') and 0")
    assert program.end() == 0
    assert found(program).total() == 3 * PER_RUN
    assert len(saved(program)) == 1 and len(notes(program)) == 1


def test_nothing_is_left_of_what_was_kept(start: Start) -> None:
    program = start()
    child = program.do("os.fork() or __import__('time').sleep(60)")
    kept = [one for one in descriptors(program.pid) if ".cubins." in one]
    assert len(kept) == 1 and kept[0].endswith("(deleted)")
    until(lambda: not [one for one in descriptors(child) if ".cubins." in one])
    os.kill(child, 9)
    begin(program)
    assert not [one for one in descriptors(program.pid) if ".cubins." in one]
    assert program.end() == 0
    assert sorted(path.name for path in program.folder.iterdir()) == [
        program.dump().name,
        "cubins",
    ]


def descriptors(pid: int) -> list[str]:
    found = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # it may be closed by now
            found.append(str(path.readlink()))
    return found


# What hinders it


def test_without_the_right_to_sample_the_answer_says_what_to_do(start: Start) -> None:
    program = start(FAKE_CUPTI="no_pc_permission")
    for mode in ("continuous", "serialized:7", "continuous"):
        reply = switch(program, mode)
        assert not reply.ok
        assert "run as root or with CAP_SYS_ADMIN" in reply.error
        assert "NVreg_RestrictProfilingToAdminUsers=0" in reply.error
        assert program.do("work(3)") == 3
    assert switch(program, "off").ok
    assert notes(program) == [reply.error] and not saved(program)
    assert program.end() == 0
    assert len(records(program.dump())["kernel"]) == 29


def test_an_old_cupti_is_told(start: Start) -> None:
    program = start(FAKE_CUPTI="version:21")
    reply = switch(program, "continuous")
    assert not reply.ok and reply.error.startswith("PC sampling needs CUPTI 12.4 or newer")


@pytest.mark.parametrize("mode", BAD_MODES)
def test_a_mode_that_there_is_not_changes_nothing(start: Start, tmp_path: Path, mode: str) -> None:
    program = start(FLAME_PC="continuous")
    reply = switch(program, mode)
    assert not reply.ok
    assert reply.error.startswith("no such mode" if mode else "not understood")
    before = told(program, tmp_path)
    program.do("work(2)")
    assert program.end() == 0
    assert found(program) == told(program, tmp_path)
    assert (found(program) - before).total() == 2 * PER_RUN


def test_a_program_without_a_gpu_is_told_apart(start: Start) -> None:
    program = start("import nvtx; nvtx.mark('one')")
    reply = switch(program, "continuous")
    assert reply == SamplingReply(ok=False, error="no GPU work of this process is recorded")


def test_a_full_recording_takes_no_samples(start: Start) -> None:
    program = start(FLAME_MAX_MB="1")
    with closing(program.control()) as control:
        program.run("for _ in range(20): work(1000)")
        until(lambda: (now := control.status()) and now.state == "full")
    assert switch(program, "continuous").error == "there is no more room for the recording"


LINES = [
    b'{"do":"pc"}',
    b'{"do":"status","mode":"off"}',
    b'{"do":"pc","mode":off}',
    b'{"do":"pc","mode":"off"',
    b'{"do":"pc","mode":"off","mode":"off"}',
    b'{"mode":"off","do":"pc"}',
    b'{"do":"pc",}',
    b'{"do":"pc","more":"off"}',
]


def test_other_lines_are_not_understood(start: Start) -> None:
    program = start()
    program.heard()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        folder = os.open(program.folder, os.O_PATH)
        name = program.dump().with_suffix(".sock").name
        connection.connect(f"/proc/self/fd/{folder}/{name}")
        os.close(folder)
        lines = connection.makefile("rwb", buffering=0)
        for line in LINES:
            lines.write(line + b"\n")
            answer: dict[str, Any] = json.loads(lines.readline())
            assert not answer["ok"] and "not understood" in answer["error"]
        lines.write(b'{ "do" : "pc" , "mode" : "off" }\n')
        assert json.loads(lines.readline()) == {"ok": True, "contexts": 0}


# A library that came late


def test_contexts_from_before_are_sampled_once_they_are_used(
    injected_env: Callable[..., dict[str, str]], library: Path, tmp_path: Path
) -> None:
    env = injected_env(tmp_path / "dumps", FAKE_TRUTH=str(tmp_path / "truth"))
    del env["CUDA_INJECTION64_PATH"], env["NVTX_INJECTION64_PATH"]
    with Program(SCRIPT, env) as program:
        assert program.do(f"ctypes.CDLL({str(library)!r}).flame_attach(None)") == 1
        assert switch(program, "continuous") == SamplingReply(ok=True, contexts=0)
        program.do("work(1)")
        until(lambda: switch(program, "continuous").contexts)
        program.do("work(4)")
        assert program.end() == 0
        assert found(program) == told(program, tmp_path)
        assert found(program).total() >= 4 * PER_RUN
        assert any("loaded before flame was attached" in note for note in notes(program))
