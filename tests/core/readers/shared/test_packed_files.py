"""Packed files: read as they are unpacked, as far as they are whole, within bounds."""

from __future__ import annotations

import gzip
import lzma
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.readers.shared import packed_files
from flame.core.readers.shared.packed_files import (
    CUT_OFF,
    PackedError,
    UnpackedFile,
    UnpackedSizeError,
    open_binary,
    raw_position,
    read_whole,
)
from tests.support.zstd import zstd

Pack = Callable[[bytes], bytes]
PACK: dict[str, Pack] = {
    "gzip": gzip.compress,
    "zstd": zstd.compress,
    "xz": partial(lzma.compress, preset=0),
}
TEXT = b"".join(b"main;work%d %d\n" % (at % 977, at * at) for at in range(40_000))
each_packing = pytest.mark.parametrize("packing", PACK)


def silent(stage: str, done: int, expected: int) -> None: ...


def write(tmp_path: Path, data: bytes) -> Path:
    (path := tmp_path / "stacks.folded").write_bytes(data)
    return path


def read_until_damage(path: Path) -> tuple[bytes, PackedError]:
    """What one gets step by step, and how it ended."""
    found = []
    with open_binary(path) as file, pytest.raises(PackedError) as raised:
        while piece := file.read1(1 << 16):  # type: ignore[attr-defined]
            found.append(piece)
    return b"".join(found), raised.value


@each_packing
def test_it_is_told_by_its_content_and_unpacked(packing: str, tmp_path: Path) -> None:
    path = write(tmp_path, PACK[packing](TEXT))
    with open_binary(path) as file:
        assert isinstance(file, UnpackedFile)
        assert (file.read(100), file.tell()) == (TEXT[:100], 100)
        assert 0 < raw_position(file) < path.stat().st_size
    assert read_whole(path, silent) == TEXT


def test_a_plain_file_is_read_as_it_is(tmp_path: Path) -> None:
    assert read_whole(write(tmp_path, TEXT), silent) == TEXT


@each_packing
def test_frames_one_after_another_are_one_file(packing: str, tmp_path: Path) -> None:
    pack = PACK[packing]
    assert (
        read_whole(write(tmp_path, pack(TEXT) + pack(b"") + pack(b"end")), silent) == TEXT + b"end"
    )


def test_zeros_with_which_xz_fills_up_are_nothing(tmp_path: Path) -> None:
    data = lzma.compress(TEXT) + bytes(8) + lzma.compress(b"end") + bytes(20_000)
    assert read_whole(write(tmp_path, data), silent) == TEXT + b"end"


@each_packing
def test_what_comes_before_the_cut_is_read(packing: str, tmp_path: Path) -> None:
    whole = PACK[packing](TEXT)
    found, error = read_until_damage(write(tmp_path, whole[: len(whole) * 3 // 4]))
    assert error.reason == CUT_OFF
    assert str(error) == f"not a whole {packing} file (cut off)"
    assert TEXT.startswith(found)
    assert packing == "zstd" or len(found) > len(TEXT) // 2  # whose blocks are 128 kB


@each_packing
def test_what_comes_before_damage_is_read(packing: str, tmp_path: Path) -> None:
    whole = bytearray(PACK[packing](TEXT))
    at = len(whole) * 3 // 4
    whole[at : at + 16] = bytes(byte ^ 0xFF for byte in whole[at : at + 16])
    found, error = read_until_damage(write(tmp_path, bytes(whole)))
    assert str(error) == f"not a whole {packing} file (damaged)"
    # Checksums stand at the end: of gzip and zstd a wrong piece may come before it.
    assert packing != "xz" or TEXT.startswith(found)


@each_packing
def test_what_unpacks_to_more_than_traces_do_is_refused(
    packing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_files, "_FREE", 1 << 20)
    zeros = bytes(1 << 20)
    if packing == "gzip":
        compressor = zlib.compressobj(9, wbits=31)
        data = b"".join([*(compressor.compress(zeros) for _ in range(8)), compressor.flush()])
    else:
        data = PACK[packing](zeros * 8)
    taken = 0
    with open_binary(write(tmp_path, data)) as file, pytest.raises(UnpackedSizeError) as raised:
        while piece := file.read(1 << 20):
            taken += len(piece)
    assert "times its size" in str(raised.value)
    assert taken < 7 << 20


def test_an_xz_that_takes_a_gigabyte_to_unpack_is_refused(tmp_path: Path) -> None:
    data = bytearray(lzma.compress(TEXT, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0}]))
    data[16] = 0x24  # The dictionary's size: xz file format, 5.3.1.
    data[20:24] = zlib.crc32(data[12:20]).to_bytes(4, "little")
    with pytest.raises(PackedError, match="not a whole xz file"):
        read_whole(write(tmp_path, bytes(data)), silent)


def test_without_zstd_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    path = write(tmp_path, zstd.compress(TEXT))
    with pytest.raises(InputError, match=r"backports\.zstd: pip install backports\.zstd") as raised:
        open_binary(path)
    assert str(raised.value).startswith(f"{path}: ")
