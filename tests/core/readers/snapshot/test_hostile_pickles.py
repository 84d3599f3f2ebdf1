"""Pickles that would run or take something: refused in one line before they are unpickled."""

from __future__ import annotations

import gzip
import os
import pickle
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flame.cli.main import main
from flame.core.errors import InputError
from flame.core.readers.snapshot.pickle_check import check_pickle
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

_REPEATED = b"\x80\x02}\x8c\x08segments]\x8c\x0ddevice_tracesX\x00\x00\x00\x00"
_LIST = b"](h\x01h\x01h\x01h\x01h\x01h\x01h\x01h\x01e"


def _repeating() -> dict[str, Any]:
    """A list of a million places of one list of frames: nothing on disk."""
    frame = {"name": "f", "filename": "f.py", "line": 1}
    trace = [{"action": "alloc", "addr": 1, "size": 1, "frames": [frame] * 1_000}] * 100_000
    return {"segments": [], "device_traces": [trace] * 100}


ODD = {
    "underflow": b"\x80\x04a.",
    "no memo": b"\x80\x04h\x05.",
    "key that is none": b"\x80\x04}]K\x01s.",
    "a number": b"\x80\x04K\x01.",
    "a list": pickle.dumps([1, 2], 4),
    "an empty dictionary": pickle.dumps({}, 4),
    "no segments": pickle.dumps({"segments": 1, "device_traces": []}, 4),
    "repeats its parts": pickle.dumps(_repeating(), 4),
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
