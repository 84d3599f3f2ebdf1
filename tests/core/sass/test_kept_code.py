"""Kept code of functions: damaged files, links, caches, and cubins that others can change."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from flame.core.model.pc_samples import Code
from flame.core.sass import code_files as kept
from flame.core.sass import disassembly as codes_module
from tests.core.sass.cubin_recordings import (
    CRC,
    CUBIN,
    GEMMS,
    SOFTMAX,
    VERSION,
    Recording,
    Wanted,
    plain,
)

pytestmark = pytest.mark.deep
NOBODY = 65534


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
