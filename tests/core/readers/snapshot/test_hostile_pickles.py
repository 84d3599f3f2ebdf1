"""Pickles that would run or take something: refused in one line before they are unpickled."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import resource
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import flame
from flame.cli.main import main
from flame.core.errors import InputError
from flame.core.projection.project import project
from flame.core.projection.selection import select
from flame.core.readers.shared.deep_json import decode_json
from flame.core.readers.snapshot.pickle_check import check_pickle
from flame.core.readers.snapshot.pickle_file import memory_needed, unpickle
from tests.support.waiting import PATIENCE
from tests.support.writers.snapshotfile import SnapshotFile

_GB = 1 << 30


class _Runs:
    def __reduce__(self) -> Any:
        return os.system, ("echo it ran",)


HOSTILE = {
    "calls": pickle.dumps(_Runs(), 4),
    "calls, as text": pickle.dumps(_Runs(), 0),
    "global": b"cos\nsystem\n.",
    "instance": b"(S'x'\nios\nsystem\n.",
    "global from the stack": b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
    "object": b"\x80\x02(cos\nsystem\no.",
    "new object": b"\x80\x02K\x01)\x81.",
    "new object with keywords": b"\x80\x04K\x01)}\x92.",
    "build": b"\x80\x02}}b.",
    "extension": b"\x80\x02\x82\x01.",
    "long extension": b"\x80\x02\x84\x01\x00\x00\x00.",
    "persistent id": b"P1\n.",
    "persistent id from the stack": b"\x80\x02K\x01Q.",
    "memo of 16 GB": b"\x80\x02}r\xff\xff\xff\x7f.",
    "memo just too large": b"\x80\x02}r\x00\x00\x01\x00.",
    "number of 2 GB": b"\x80\x02\x8b\xff\xff\xff\x7f\x01.",
    "number of ten bytes": b"\x80\x02\x8a\x0a" + b"\x01" * 10 + b".",
    "bytes beyond the file": b"\x80\x04\x8e" + b"\xff" * 6 + b"\0\0.",
    "text beyond the file": b"\x80\x04\x8d" + b"\xff" * 6 + b"\0\0.",
    "text cut off": b"\x80\x02X\xff\xff\xff\x00abc.",
    "tuples in tuples": b"\x80\x02}K\x01" + b"\x85" * 3_000_000 + b"K\x02s.",
    "pairs in pairs": b"\x80\x02}K\x01" + b"K\x01\x86" * 1_000_000 + b"K\x02s.",
    "pairs of pairs": b"\x80\x02}" + b"K\x01K\x01\x86" * 2 + b"\x86K\x02s.",
    "pair after a pair": b"\x80\x04}K\x01K\x01\x86\x94\x86K\x02s.",
    "set": pickle.dumps({1, 2}, 4),
    "frozen set": pickle.dumps(frozenset([1]), 4),
    "bytes": pickle.dumps(b"x" * 300, 4),
    "buffer": b"\x80\x05\x97.",
    "copies": b"\x80\x02]2.",
    "number as text": b"I1\n.",
    "later protocol": b"\x80\x06}.",
    "more behind it": pickle.dumps({}, 4) + b"x",
    "two of them": pickle.dumps({}, 4) * 2,
    "cut off": pickle.dumps({"a": [1] * 10}, 4)[:-1],
    "empty": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused_before_it_is_unpickled(name: str) -> None:
    with pytest.raises(InputError):
        check_pickle(HOSTILE[name])


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_snapshots_of_all_protocols_pass(protocol: int) -> None:
    file = SnapshotFile(2)
    file.free(file.alloc(1 << 20, ["main", "f" * 300, "ünïcödé", ""]), pending=True)
    document = file.document() | {
        "numbers": [0, 255, 1 << 15, -1, 1 << 31, 1 << 62, 0.5, None, True]
    }
    check_pickle(pickle.dumps(document, protocol))


# What is allowed, and yet no snapshot, or one that takes more than it should.


def _repeating() -> dict[str, Any]:
    """A list of a million places of one list of frames: nothing on disk."""
    frame = {"name": "f", "filename": "f.py", "line": 1}
    trace = [{"action": "alloc", "addr": 1, "size": 1, "frames": [frame] * 1_000}] * 100_000
    return {"segments": [], "device_traces": [trace] * 100}


def _repeated_rows(*where: str) -> bytes:
    """Blocks or segments that are one object, as many as a tenth of the bytes."""
    rows = 10_000
    block = {"size": 512, "requested_size": 512, "address": 0, "state": "active_allocated"}
    blocks = [block] * (rows if "blocks" in where else 1)
    segment = {"device": 0, "address": 0, "total_size": 512, "stream": 0, "blocks": blocks}
    segments = [segment] * (rows if "segments" in where else 1)
    return pickle.dumps({"segments": segments, "more": "x" * 10 * rows}, 4)


ODD = {
    "underflow": b"\x80\x04a.",
    "frame of 8 EB": b"\x80\x04\x95" + b"\0" * 7 + b"\x80}.",
    "frame of 1 TB": b"\x80\x04\x95" + b"\0" * 5 + b"\x01\0\0}.",
    "no memo": b"\x80\x04h\x05.",
    "key that is none": b"\x80\x04}]K\x01s.",
    "a number": b"\x80\x04K\x01.",
    "a list": pickle.dumps([1, 2], 4),
    "an empty dictionary": pickle.dumps({}, 4),
    "no segments": pickle.dumps({"segments": 1, "device_traces": []}, 4),
    "repeats its parts": pickle.dumps(_repeating(), 4),
    "repeats a block": _repeated_rows("blocks"),
    "repeats a segment": _repeated_rows("segments"),
    "no text": b"\x80\x04\x8c\x02\xff\xff.",
}


@pytest.mark.parametrize("name", [*HOSTILE, *ODD])
def test_commands_refuse_it_in_one_line(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = HOSTILE.get(name) or ODD.get(name, b"")
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(data)
    assert main(["info", str(path)]) == 3
    out, said = capfd.readouterr()
    assert not out and said.startswith("flame: ") and said.count("\n") == 1
    assert "it ran" not in said


@pytest.mark.parametrize("name", ODD)
def test_it_takes_little_memory_and_time(name: str, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.pickle.gz"
    path.write_bytes(gzip.compress(ODD[name]))
    command = [sys.executable, "-m", "flame", "info", str(path)]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2 * _GB, 2 * _GB))

    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, preexec_fn=limit
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("flame: ") and done.stderr.count("\n") == 1


def _doubled(value: object, times: int) -> object:
    for _ in range(times):
        value = [value, value]
    return value


def _snapshot(**parts: Any) -> bytes:
    return pickle.dumps({"segments": [], "device_traces": []} | parts, 4)


def _steps(number: int) -> bytes:
    """As many steps as allocations: what lives is never asked of all at each."""
    frames = [{"name": "f", "filename": "f.py", "line": 1}]
    trace = [
        {"action": "alloc", "addr": 512 * at, "size": 9, "time_us": 2 * at, "frames": frames}
        for at in range(1, number)
    ]
    ends = [
        {"stage": "END", "name": "ProfilerStep#1", "device": 0, "time_us": 2 * at + 1}
        for at in range(1, number)
    ]
    return _snapshot(device_traces=[trace], external_annotations=ends)


def _deep(frames: int) -> bytes:
    deep = [{"name": f"f{at}", "filename": "f.py", "line": 1} for at in range(2)] * frames
    return _snapshot(device_traces=[[{"action": "alloc", "addr": 1, "size": 1, "frames": deep}]])


LONG = {
    "an action that is long when it is written": lambda: _snapshot(
        device_traces=[[{"action": _doubled([], 60)}]]
    ),
    "very many devices": lambda: _snapshot(
        device_traces=[[{"action": "alloc", "addr": 1, "size": 1}] for _ in range(30_000)]
    ),
    "very many steps": lambda: _steps(20_000),
    "a very deep stack": lambda: _deep(50_000),
}


@pytest.mark.parametrize("name", LONG)
def test_it_is_opened_in_a_time_that_its_size_allows(name: str, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(LONG[name]())
    profile = flame.load(path).profile
    assert profile.memory is not None
    assert len(profile.devices) <= 128
    assert len(profile.memory.devices) == len(profile.devices)
    assert project(profile, select()).depth.max() < 2_000


def test_what_was_left_out_of_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.pickle"
    told = {
        "an action that is long when it is written": "events of kinds that flame does not know",
        "very many devices": "29,872 events and blocks make no sense",
        "a very deep stack": "1 stacks are very deep",
    }
    for name, words in told.items():
        path.write_bytes(LONG[name]())
        warnings = flame.load(path).profile.warnings
        assert any(one.startswith(words) for one in warnings), (name, warnings)


@pytest.mark.parametrize(
    "document", [[], {"segments": []}, {"segments": [], "device_traces": [[]]}]
)
def test_one_with_nothing_in_it_has_no_memory(document: object, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(document, 4))
    profile = flame.load(path).profile
    assert project(profile, select()).total[0] == 0
    assert main(["info", str(path)]) == 0


def test_blocks_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    block = {"address": 1, "size": (1 << 63) - 1, "state": "inactive"}
    segment = {"device": 0, "address": 1, "total_size": 1, "blocks": [block] * 3}
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(_snapshot(segments=[segment]))
    with pytest.raises(InputError, match="64 bits"):
        flame.load(path)


_NUMBER = 30_000


def _list_of(opcodes: bytes) -> bytes:
    return b"\x80\x04]\x94(" + opcodes * _NUMBER + b"e."


MANY = {
    "dictionaries": _list_of(b"}"),
    "dictionaries of one": _list_of(b"}NNs"),
    "lists": _list_of(b"]"),
    "lists in lists": b"\x80\x04" + b"]" * _NUMBER + b"a" * (_NUMBER - 1) + b".",
    "nothing": _list_of(b"N"),
    "small numbers": _list_of(b"K\x01"),
    "numbers": _list_of(b"M\x01\x10"),
    "large numbers": _list_of(b"\x8a\x02\x01\x10"),
    "decimals": _list_of(b"G12345678"),
    "what is there already": _list_of(b"h\x00"),
    "short texts": _list_of(b"\x8c\x02ab"),
    "texts": _list_of(b"X\x02\0\0\0ab"),
    "pairs": _list_of(b"K\x01K\x02\x86"),
    "places": _list_of(b"N\x94"),
}
MANY_JSON = {
    "lists": b"[" + b"[]," * _NUMBER + b"[]]",
    "dictionaries": b"[" + b"{}," * _NUMBER + b"{}]",
    "dictionaries of one": b"[" + b'{"":1},' * _NUMBER + b"{}]",
    "numbers": b"[" + b"300," * _NUMBER + b"1]",
    "texts": b"[" + b'"ab",' * _NUMBER + b"1]",
}


@pytest.mark.parametrize("name", [*MANY, *(f"JSON: {one}" for one in MANY_JSON)])
def test_the_memory_that_it_takes_is_known_before(name: str) -> None:
    """Within a factor of 3: what is refused for want of memory depends on it."""
    data = MANY.get(name) or MANY_JSON[name.removeprefix("JSON: ")]
    tracemalloc.start()
    root = unpickle([data]) if name in MANY else decode_json(data)
    taken = tracemalloc.get_traced_memory()[1] + len(data)
    tracemalloc.stop()
    assert root
    assert taken / 3 < memory_needed(data) < 3 * taken


def test_it_is_refused_where_there_is_too_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLAME_MEMORY", "100kB")
    document: dict[str, Any] = {"segments": [], "more": [[] for _ in range(10_000)]}
    for data in (pickle.dumps(document), json.dumps(document).encode()):
        path = tmp_path / "snapshot"
        path.write_bytes(data)
        with pytest.raises(InputError, match="needs about"):
            flame.load(path)
