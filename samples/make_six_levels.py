#!/usr/bin/env python3
"""Records samples/six_levels: a tiny language model on the test double of the CUDA driver.

The double needs a C++ compiler; that instructions have text, nvdisasm (pip install
nvidia-cuda-nvdisasm). Everything that the recording tells of the machine is replaced; see README.md
for what is in it.
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from samples.live_demo import double  # noqa: E402
from samples.tiny_llm_samples import script  # noqa: E402

FOLDER = ROOT / "samples" / "six_levels"
WORKLOAD = ROOT / "samples" / "tiny_llm.py"
STEPS = 6
NAME = "tiny_llm.fdump"
FACTS: Mapping[str, str] = {
    "host": "synthetic",
    "command": "python samples/tiny_llm.py",
    "executable": "/usr/bin/python3",
    "process": "python",
    "boot_id": "00000000-0000-0000-0000-000000000000",
}
"""What the recording says instead."""
START = 1_767_225_600 * 10**9
"""ns since 1970 at which it says that it began: 2026."""
# dump.h: where a header has start_unix and tail; chunks, and their fields in front of the records
_START_UNIX, _TAIL, _HEADER, _CHUNK = 24, 40, 64 << 10, 64 << 10
_KIND, _COMMITTED, _RECORDS = 4, 16, 64
_TEXT, _META = 1, 12
_SHORT = 4  # characters


def record(folder: Path) -> Path:
    """The dump of a run that is recorded into ``folder``."""
    described = folder / "samples.txt"
    described.write_text(script())
    recording = folder / "recording"
    words = [sys.executable, "-m", "flame", "record", "--pc", "continuous", "-o", str(recording)]
    more = {
        "LD_LIBRARY_PATH": str(double()),
        "FAKE_SAMPLES": str(described),
        "PYTHONPATH": str(ROOT),
    }
    subprocess.run(
        [*words, "--", sys.executable, str(WORKLOAD), str(STEPS)],
        env=os.environ | more,
        check=True,
    )
    (dump,) = recording.glob("*.fdump")
    return dump


def neutral(dump: bytes) -> bytes:
    """The same dump of no machine in particular."""
    data = bytearray(dump)
    struct.pack_into("<Q", data, _START_UNIX, START)
    for at in _chunks(data, _TEXT):
        _rewrite(data, at, _facts(data))
    found = [word for word in _secrets() if _says(data, word)]
    if found:
        raise SystemExit(f"the recording still says {', '.join(found)}")
    return bytes(data)


def _says(data: bytearray, word: str) -> bool:
    """Whether ``word`` is in the dump; a short one as a word of its own, in the texts alone.

    In columns of numbers a host called ``vm`` stands by chance.
    """
    if len(word) > _SHORT:
        return word.encode() in data
    texts = (text for at in _chunks(data, _TEXT) for _, text in _texts(data, at))
    own = re.compile(rb"\b" + re.escape(word.encode()) + rb"\b")
    return any(own.search(text) for text in texts)


def _chunks(data: bytearray, kind: int) -> Iterator[int]:
    tail: int = struct.unpack_from("<Q", data, _TAIL)[0]
    for at in range(_HEADER, tail, _CHUNK):
        if struct.unpack_from("<H", data, at + _KIND)[0] == kind:
            yield at


def _records(data: bytearray, at: int) -> memoryview:
    committed: int = struct.unpack_from("<I", data, at + _COMMITTED)[0]
    return memoryview(data)[at + _RECORDS : at + _RECORDS + committed]


def _texts(data: bytearray, at: int) -> list[tuple[int, bytes]]:
    rows, found, place = bytes(_records(data, at)), [], 0
    while place < len(rows):
        number, size = struct.unpack_from("<II", rows, place)
        found.append((number, rows[place + 8 : place + 8 + size]))
        place += 8 + -(-size // 8) * 8
    return found


def _facts(data: bytearray) -> dict[int, bytes]:
    """The texts to be replaced by their numbers."""
    of = {number: text for at in _chunks(data, _TEXT) for number, text in _texts(data, at)}
    pairs = [
        pair
        for at in _chunks(data, _META)
        for pair in struct.iter_unpack("<II", _records(data, at))
    ]
    return {
        value: FACTS[of[key].decode()].encode()
        for key, value in pairs
        if of[key].decode() in FACTS and value in of
    }


def _rewrite(data: bytearray, at: int, facts: Mapping[int, bytes]) -> None:
    made = bytearray()
    for number, text in _texts(data, at):
        text = facts.get(number, text.replace(f"{ROOT}/".encode(), b""))
        made += struct.pack("<II", number, len(text)) + text + bytes(-len(text) % 8)
    if len(made) > _CHUNK - _RECORDS:
        raise SystemExit("the texts have no room")
    struct.pack_into("<I", data, at + _COMMITTED, len(made))
    data[at + _RECORDS : at + _CHUNK] = made.ljust(_CHUNK - _RECORDS, b"\0")


def _secrets() -> list[str]:
    """What must not be in it."""
    return [str(ROOT), str(Path.home()), sys.prefix, socket.gethostname(), f"/{getpass.getuser()}"]


def main() -> None:
    """Replaces the sample."""
    with tempfile.TemporaryDirectory() as folder:
        dump = record(Path(folder))
        shutil.rmtree(FOLDER, ignore_errors=True)
        shutil.copytree(dump.parent / "cubins", FOLDER / "cubins")
        (FOLDER / NAME).write_bytes(neutral(dump.read_bytes()))
    for one in (FOLDER, *FOLDER.rglob("*")):
        one.chmod(0o755 if one.is_dir() else 0o644)  # as everything else that is checked in
    size = sum(one.stat().st_size for one in FOLDER.rglob("*") if one.is_file())
    print(f"{FOLDER}: {size / 2**20:.2f} MiB", file=sys.stderr)


if __name__ == "__main__":
    main()
