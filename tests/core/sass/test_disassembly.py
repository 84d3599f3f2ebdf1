"""Where the code of functions comes from: kept beside the cubin, in the cache, or from nvdisasm."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from flame.core import external
from flame.core.errors import CancelledError
from flame.core.model.pc_samples import Code
from flame.core.options import silent
from flame.core.sass import code_files as kept
from flame.core.sass import disassembly as codes_module
from flame.core.sass import nvdisasm
from flame.core.sass.disassembly import find_codes, store_codes
from flame.core.sass.module_lives import CubinId, Cubins
from tests.support.paths import SAMPLES
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.deep

CUBIN = SAMPLES / "llm_kernels.cubin"
GEMM_16, GEMM_32 = (f"_ZN3llm4gemmILi{tile}EEEvPKfS2_Pfi" for tile in (16, 32))
GEMMS = {GEMM_16, GEMM_32}
SOFTMAX = "_ZN3llm7softmaxEPKfPfi"
CRC = 0xFEDCBA9876543210
NOBODY = 65534
VERSION = '[ "$1" = --version ] && { echo "Cuda, release 13.5, V13.5.37"; exit; }\n'
NO_TEXT = "the instructions of {} no text: "

Wanted = dict[int, set[str]]


def of_one(wanted: Wanted) -> dict[Cubins, set[str]]:
    """What is wanted of cubins that older dumps know by their checksum alone; 0: not known."""
    return {(CubinId(crc),) if crc else (): names for crc, names in wanted.items()}


class Recording:
    """A folder with cubins, a cache of its own, and an nvdisasm that counts how often it is run."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch = folder / "x.flame", monkeypatch
        self.cubins = self.folder / "cubins"
        self.cubins.mkdir(parents=True)
        self._log = folder / "runs"
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))

    def add(self, crc: int = CRC) -> Path:
        return Path(shutil.copy(CUBIN, self.cubins / f"{crc:016x}.cubin"))

    def program(self, text: str) -> Path:
        """Makes a script the nvdisasm that is found."""
        path = self.folder.parent / "program"
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o700)
        self._patch.setenv(nvdisasm.PATH_VARIABLE, str(path))
        return path

    def real(self) -> None:
        found = nvdisasm.find_disassembler()
        if found is None:
            pytest.skip("nvdisasm is not here")
        log = f'[ "$1" = --version ] || echo "$*" >> {self._log}'
        self.program(f'{log}\nexec {found.path} "$@"\n')

    def runs(self) -> int:
        return len(self._log.read_text().splitlines()) if self._log.exists() else 0

    def codes(self, wanted: Wanted) -> tuple[dict[tuple[int, str], Code], list[str]]:
        codes, warnings = find_codes(self.folder, of_one(wanted), silent)
        return {(cubin.crc, name): code for ((cubin,), name), code in codes.items()}, warnings

    def store(self, wanted: Wanted) -> list[str]:
        return store_codes(self.folder, of_one(wanted), silent)


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recording:
    return Recording(tmp_path, monkeypatch)


def plain(codes: dict[tuple[int, str], Code]) -> dict[tuple[int, str], Any]:
    """All that is in ``codes``, to be compared."""
    return {
        key: (one.name, one.text, one.files, *(getattr(one, name).tolist() for name in COLUMNS))
        for key, one in codes.items()
    }


COLUMNS = ("offset", "file", "line")


def test_of_nvdisasm_of_the_cache_and_kept_are_the_same(recording: Recording) -> None:
    recording.real()
    cubin = recording.add()
    wanted: Wanted = {CRC: {*GEMMS, SOFTMAX}}
    first, warnings = recording.codes(wanted)
    assert not warnings
    assert {name for _, name in first} == wanted[CRC]
    softmax = first[CRC, SOFTMAX]
    assert len(softmax) == 3840 // 16
    assert softmax.files[0] == "samples/llm_kernels.cu"
    assert softmax.text[0].startswith("LDC R1, ") and softmax.line[0] > 0
    runs = recording.runs()
    assert plain(recording.codes(wanted)[0]) == plain(first)
    assert recording.store(wanted) == []
    assert recording.runs() == runs, "the cache knows it"
    shutil.rmtree(recording.folder.parent / "cache")
    cubin.unlink()
    recording.program("exit 1")
    again, warnings = recording.codes(wanted)
    assert plain(again) == plain(first)
    assert not warnings and not (recording.folder.parent / "cache").exists()


def test_instances_of_a_template_each_have_the_lines_they_have_alone(recording: Recording) -> None:
    recording.real()
    recording.add()
    together, _ = recording.codes({CRC: GEMMS})
    shutil.rmtree(recording.folder.parent / "cache")
    alone = [recording.codes({CRC: {name}})[0] for name in GEMMS]
    assert plain(together) == plain(alone[0] | alone[1])


def test_without_the_cache_nothing_is_kept(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    recording.add()
    recording.real()
    for number in (1, 2):
        wanted = of_one({CRC: {SOFTMAX}})
        codes, warnings = find_codes(recording.folder, wanted, silent, cache=False)
        assert (len(codes), warnings, recording.runs()) == (1, [], number)
    assert not (tmp_path / "none").exists()


def test_what_is_asked_for_later_is_added(recording: Recording) -> None:
    recording.real()
    cubin = recording.add()
    recording.store({CRC: {SOFTMAX}})
    runs = recording.runs()
    assert recording.store({CRC: {SOFTMAX, *GEMMS}}) == []
    assert recording.runs() > runs
    cubin.unlink()
    codes, warnings = recording.codes({CRC: {SOFTMAX, *GEMMS}})
    assert len(codes) == 3 and not warnings


def test_a_function_whose_first_line_is_in_doubt_is_asked_for_alone(recording: Recording) -> None:
    recording.add()
    line = '\t//## File "a.cu", line 7\n'
    both: list[str] = []
    for number, name in ((22, GEMM_32), (23, GEMM_16)):
        text = f".text.{name}:\n{{}}        /*0000*/   EXIT ;\n"
        (recording.folder / str(number)).write_text(text.format(line))
        both.append(text.format("" if both else line))
    (recording.folder / "22,23").write_text("".join(both))
    (recording.folder / "23,22").write_text("".join(both))
    recording.program(f'{VERSION}cat "{recording.folder}/$4"\n')
    codes, warnings = recording.codes({CRC: GEMMS})
    assert not warnings
    assert [one.line.tolist() for one in codes.values()] == [[7], [7]]


def test_the_same_cubin_of_another_recording_is_known(recording: Recording) -> None:
    recording.real()
    recording.add(1)
    recording.add(2)
    codes, warnings = recording.codes({1: {SOFTMAX}, 2: {SOFTMAX}})
    assert codes.keys() == {(1, SOFTMAX), (2, SOFTMAX)} and not warnings
    assert recording.runs() == 1


@pytest.mark.parametrize("program", ["/none", "/etc/passwd"])
def test_without_nvdisasm(
    program: str, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.add()
    monkeypatch.setenv(nvdisasm.PATH_VARIABLE, program)
    advice = "nvdisasm is not here: pip install nvidia-cuda-nvdisasm"
    assert recording.codes({CRC: GEMMS}) == ({}, [NO_TEXT.format("2 functions have") + advice])
    assert recording.store({CRC: {SOFTMAX}}) == [NO_TEXT.format("1 function have") + advice]


def test_what_is_missing_is_told_apart(recording: Recording) -> None:
    recording.real()
    recording.add()
    (recording.cubins / f"{7:016x}.cubin").write_bytes(b"no cubin")
    wanted: Wanted = {0: {"a"}, 1: {"b", "c"}, CRC: {SOFTMAX, "d", "e", "f"}, 7: {"g"} | GEMMS}
    codes, warnings = recording.codes(wanted)
    assert codes.keys() == {(CRC, SOFTMAX)}
    assert len(warnings) == 4
    reasons = "\n".join(warnings)
    assert "3 functions have no text: they are not in the cubin" in reasons
    assert f"2 functions have no text: their cubins are not in {recording.cubins}" in reasons
    assert "1 function have no text, for other reasons" in reasons


# Programs that are no good

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


# Files that are not what they should be


def kept_file(**changes: Any) -> bytes:
    function = {"name": "f", "files": ["a.cu"], "offset": [0, 16], "text": ["NOP", "EXIT"]}
    function |= {"file": [0, -1], "line": [3, 0]}
    function |= {key: value for key, value in changes.items() if key in function}
    whole = {"format": "flame-sass", "version": 1, "disassembler": "13", "functions": [function]}
    whole |= {key: value for key, value in changes.items() if key in whole}
    return json.dumps(whole).encode()


def read_kept(recording: Recording, data: bytes) -> dict[tuple[int, str], Code]:
    (recording.cubins / f"{CRC:016x}.sass").write_bytes(data)
    return recording.codes({CRC: {"f"}})[0]


def test_the_file_as_it_is_documented(recording: Recording) -> None:
    code = read_kept(recording, kept_file())[CRC, "f"]
    assert (code.text, code.files) == (("NOP", "EXIT"), ("a.cu",))
    assert [column.tolist() for column in (code.offset, code.file, code.line)] == [
        [0, 16],
        [0, -1],
        [3, 0],
    ]


DAMAGED: dict[str, bytes] = {
    "nothing": b"",
    "text": b"hello",
    "deep": b"[" * 100_000,
    "cut": kept_file()[:-20],
    "format": kept_file(format="other"),
    "version": kept_file(version=2),
    "lengths": kept_file(line=[3]),
    "order": kept_file(offset=[16, 0]),
    "twice": kept_file(offset=[0, 0]),
    "negative": kept_file(offset=[-16, 0]),
    "beyond": kept_file(offset=[0, 1 << 70]),
    "file": kept_file(file=[0, 1]),
    "far": kept_file(line=[1 << 40, 0]),
    "kind": kept_file(text=[1, 2]),
    "no object": kept_file(functions=7),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_as_none(data: bytes, recording: Recording) -> None:
    assert read_kept(recording, data) == {}


def test_a_damaged_cache_is_as_none(recording: Recording) -> None:
    recording.real()
    recording.add()
    first, _ = recording.codes({CRC: {SOFTMAX}})
    [cached] = recording.folder.parent.glob("cache/flame/sass/*")
    assert cached.stat().st_mode & 0o77 == 0
    for data in (b"", cached.read_bytes()[:-9], cached.read_bytes().replace(b"LDG", b"STG")):
        [cached] = recording.folder.parent.glob("cache/flame/sass/*")
        cached.write_bytes(data)
        again, warnings = recording.codes({CRC: {SOFTMAX}})
        assert plain(again) == plain(first) and not warnings


def test_the_cache_does_not_only_grow(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.real()
    monkeypatch.setenv("FLAME_CACHE_SIZE", "0.001kB")
    for crc in (1, 2):
        with recording.add(crc).open("ab") as file:
            file.write(b"%d" % crc)
        recording.codes({crc: {SOFTMAX}})
    assert len(list(recording.folder.parent.glob("cache/flame/sass/*"))) == 1


def test_no_place_for_a_cache_is_no_obstacle(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.real()
    recording.add()
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    codes, [warning] = recording.codes({CRC: {SOFTMAX}})
    assert codes.keys() == {(CRC, SOFTMAX)}
    assert warning.startswith("what nvdisasm printed is not kept for the next time: no cache at ")


def test_links_are_not_followed(recording: Recording, tmp_path: Path) -> None:
    recording.real()
    (recording.cubins / f"{1:016x}.cubin").symlink_to(CUBIN)
    other = tmp_path / "other.sass"
    other.write_bytes(kept_file())
    (recording.cubins / f"{2:016x}.sass").symlink_to(other)
    os.mkfifo(recording.cubins / f"{3:016x}.cubin")
    os.mkfifo(recording.cubins / f"{4:016x}.sass")
    (recording.cubins / f"{5:016x}.cubin").mkdir()
    wanted: Wanted = {1: {SOFTMAX}} | {crc: {"f"} for crc in range(2, 6)}
    codes, [warning] = recording.codes(wanted)
    assert not codes and "of 5 functions" in warning
    elsewhere = recording.cubins.rename(tmp_path / "elsewhere")
    shutil.copy(CUBIN, elsewhere / f"{6:016x}.cubin")
    recording.cubins.symlink_to(elsewhere)
    assert recording.codes({6: {SOFTMAX}})[0] == {}


def test_a_file_larger_than_any_is_not_read(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_LARGEST", 50)
    assert read_kept(recording, kept_file()) == {}


def test_where_nothing_can_be_kept_nothing_is_left(recording: Recording) -> None:
    recording.real()
    recording.add()
    (recording.cubins / f"{CRC:016x}.sass").mkdir()
    with pytest.raises(OSError, match="directory"):
        recording.store({CRC: {SOFTMAX}})
    assert len(list(recording.cubins.iterdir())) == 2


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


def test_what_is_disassembled_is_what_was_looked_at(recording: Recording) -> None:
    cubin = recording.add()
    exchange = f"echo other > {cubin}.new; mv {cubin}.new {cubin}"
    seen = recording.folder / "seen"
    recording.program(f'{VERSION}{exchange}; for last; do :; done; cat "$last" > {seen}')
    recording.codes({CRC: {SOFTMAX}})
    assert cubin.read_text() == "other\n"
    assert seen.read_bytes() == CUBIN.read_bytes()


@pytest.mark.parametrize("whose", ["of another user", "that others may write to"])
def test_a_cubin_that_others_can_change_is_cached_apart(
    whose: str, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.real()
    cubin = recording.add()
    cubin.chmod(0o600)
    recording.codes({CRC: {SOFTMAX}})
    runs = recording.runs()
    with monkeypatch.context() as patch:
        if whose == "of another user":
            user = cubin.stat().st_uid + 1
            patch.setattr(
                codes_module, "os", SimpleNamespace(**{**vars(os), "geteuid": lambda: user})
            )
        else:
            cubin.chmod(0o622)
        recording.codes({CRC: {SOFTMAX}})
        assert recording.runs() > runs, "what is cached of one's own is none of its"
    kept = list(recording.folder.parent.glob(f"cache/flame/sass/*-{cubin.stat().st_uid}.*"))
    assert len(kept) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a program as another user")
def test_root_disassembles_a_cubin_of_another_user_as_that_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET", "of root")
    with TemporaryDirectory() as folder:
        recording = Recording(Path(folder), monkeypatch)
        cubin = recording.add()
        for path in (Path(folder), recording.folder, recording.cubins, cubin):
            os.chown(path, NOBODY, 0)
            path.chmod(0o755)
        seen = Path(folder) / "seen"
        print_what_it_gets = f"{{ id -u; id -g; id -G; env; }} > {seen}"
        recording.program(f"{VERSION}{print_what_it_gets}").chmod(0o755)
        recording.codes({CRC: GEMMS})
        uid, gid, groups, *environment = seen.read_text().splitlines()
    assert (uid, gid, groups) == (str(NOBODY),) * 3
    assert {line.partition("=")[0] for line in environment} <= {"PATH", "LANG", "PWD", "SHLVL", "_"}
