"""Which nvdisasm is run, and programs that fail, say too much or never end."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from flame.core import external
from flame.core.errors import CancelledError
from flame.core.sass import disassembly as codes_module
from flame.core.sass import nvdisasm
from flame.core.sass.disassembly import find_codes
from tests.core.sass.cubin_recordings import CRC, SOFTMAX, VERSION, Recording, of_one
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.deep
BAD_PROGRAMS = {
    "echo 'nvdisasm fatal   : SM199 is not supported' >&2; exit 1": "SM199 is not supported",
    "exit 3": "exit 3",
    "sleep 600": "does not end within",
    "yes": "prints without end",
    "echo hello": "nvdisasm does not print them",
    "kill -SEGV $$": "nvdisasm failed",
}


@pytest.mark.parametrize(("text", "reason"), BAD_PROGRAMS.items(), ids=BAD_PROGRAMS.values())
def test_a_program_that_fails(
    text: str, reason: str, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvdisasm, "_TIMEOUT", 2.0 if "sleep" in text else PATIENCE)
    monkeypatch.setattr(nvdisasm, "_LARGEST_OUTPUT", 1 << 20)
    recording.add()
    recording.program(VERSION + text)
    begin = time.monotonic()
    codes, [warning] = recording.codes({CRC: {SOFTMAX}})
    assert not codes and reason in warning
    assert "\n" not in warning and len(warning) < 400
    assert time.monotonic() - begin < PATIENCE


def test_it_has_limits_of_its_own(recording: Recording, tmp_path: Path) -> None:
    recording.add()
    recording.program(
        f'{VERSION}while [ "$(ulimit -t)" = unlimited ]; do sleep 0.01; done; '
        f"ulimit -t > {tmp_path}/said; ulimit -f >> {tmp_path}/said"
    )
    recording.codes({CRC: {SOFTMAX}})
    seconds, blocks = map(int, (tmp_path / "said").read_text().split())
    assert 0 < seconds <= 3600
    assert 0 < blocks <= 1 << 30


@pytest.mark.parametrize(
    "text", ["sleep 600", "(sleep 600) & wait", "yes", "read answer", "exit 0"]
)
def test_a_program_that_says_no_version(
    text: str, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvdisasm, "_VERSION_TIMEOUT", 1.0)
    monkeypatch.setattr(nvdisasm, "_LARGEST_OUTPUT", 1 << 20)
    recording.program(text)
    begin = time.monotonic()
    assert nvdisasm.find_disassembler() is None
    assert time.monotonic() - begin < PATIENCE


def test_it_is_stopped_with_the_load(recording: Recording) -> None:
    recording.add()
    said = recording.folder / "pid"
    recording.program(f"{VERSION}echo $$ > {said}; sleep 60 & wait")

    def progress(stage: str, done: int, expected: int) -> None:
        assert stage == "disassembling kernels"
        if said.exists() and said.read_text().strip():
            raise CancelledError("stopped")

    with pytest.raises(CancelledError):
        find_codes(recording.folder, of_one({CRC: {SOFTMAX}}), progress)
    pid = int(said.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_all_of_it_together_ends(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes_module, "_TIMEOUT", 0.5)
    recording.program(f"{VERSION}sleep 600")
    for crc in range(1, 50):
        with recording.add(crc).open("ab") as file:
            file.write(b"%d" % crc)
    begin = time.monotonic()
    codes, [warning] = recording.codes({crc: {SOFTMAX} for crc in range(1, 50)})
    assert not codes
    assert "of 49 functions" in warning and "takes longer than" in warning
    assert time.monotonic() - begin < PATIENCE


def test_the_package_that_pip_installs_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia" / "cu13" / "bin" / "nvdisasm"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{VERSION}")
    program.chmod(0o700)
    monkeypatch.delenv(nvdisasm.PATH_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", "/none")
    monkeypatch.setattr(external, "HOME", tmp_path)
    found = nvdisasm.find_disassembler()
    assert found == nvdisasm.Disassembler(str(program), "13.5.37")


def test_a_bare_name_is_looked_for_on_path_only(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = recording.program(VERSION)
    monkeypatch.chdir(program.parent)
    monkeypatch.setenv(nvdisasm.PATH_VARIABLE, program.name)
    assert nvdisasm.find_disassembler() is None
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    assert nvdisasm.find_disassembler() == nvdisasm.Disassembler(str(program), "13.5.37")
