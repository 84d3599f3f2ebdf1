"""A file of columns gives back what was written, or says that it is damaged."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from flame.core.columns import Column
from flame.core.reopening.column_file import ColumnFile, DamagedError, read_about, write_columns

ABOUT, HEAD = b"about it", msgspec.msgpack.encode({"head": [1, 2, 3]})
DTYPES = ("int32", "int64", "uint8", "bool")
COLUMNS: dict[str, Column] = {
    "times": np.arange(9) - 5,
    "ids": np.arange(5, dtype=np.int32),
    "kinds": np.array([0, 7, 255], np.uint8),
    "flags": np.array([True, False]),
    "empty": np.zeros(0, np.int64),
    "every second": np.arange(6)[::2],
    "one value": np.broadcast_to(np.int32(7), 3),
}


def whole(columns: dict[str, Column]) -> bytes:
    file = BytesIO()
    write_columns(file, ABOUT, HEAD, columns)
    return file.getvalue()


def opened(data: bytes, folder: Path) -> BinaryIO:
    path = folder / "columns"
    path.write_bytes(data)
    return path.open("rb", 0)


def read_all(data: bytes, folder: Path) -> dict[str, Column]:
    with opened(data, folder) as binary:
        file = ColumnFile(binary)
        assert (file.about, file.content) == (ABOUT, HEAD)
        return {name: file.read(name, COLUMNS[name].dtype.str[1:]) for name in COLUMNS}


def assert_same(read: dict[str, Column], columns: dict[str, Column]) -> None:
    for name, column in columns.items():
        assert read[name].dtype == column.dtype
        np.testing.assert_array_equal(read[name], column)


def test_columns_come_back(tmp_path: Path) -> None:
    read = read_all(whole(COLUMNS), tmp_path)
    assert_same(read, COLUMNS)
    assert not read["times"].flags.writeable
    with opened(whole(COLUMNS), tmp_path) as file:
        assert read_about(file) == ABOUT


def test_columns_are_aligned(tmp_path: Path) -> None:
    data = whole({"one": np.array([1], np.uint8), "two": np.array([0x0102030405060708])})
    assert data.index(bytes(range(8, 0, -1))) % 64 == 0


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.sampled_from(DTYPES).flatmap(lambda dtype: arrays.arrays(dtype, st.integers(0, 70))),
        max_size=5,
    )
)
def test_any_columns_come_back(
    tmp_path_factory: pytest.TempPathFactory, columns: dict[str, Column]
) -> None:
    with opened(whole(columns), tmp_path_factory.getbasetemp()) as binary:
        file = ColumnFile(binary)
        read = {name: file.read(name, column.dtype.str[1:]) for name, column in columns.items()}
    assert_same(read, columns)


def test_every_byte_counts(tmp_path: Path) -> None:
    """Of the head and of columns; what lies between them is nothing."""
    data = whole(COLUMNS)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0xFF
        try:
            read = read_all(bytes(changed), tmp_path)
        except DamagedError:
            continue
        assert data[place] == 0
        assert_same(read, COLUMNS)


def test_every_byte_of_the_beginning_counts_for_what_it_is_about(tmp_path: Path) -> None:
    data = whole(COLUMNS)
    for place in range(data.index(ABOUT) + len(ABOUT)):
        changed = bytearray(data)
        changed[place] ^= 0x01
        with opened(bytes(changed), tmp_path) as file, pytest.raises(DamagedError):
            read_about(file)


def test_cut_and_longer_files_are_damaged(tmp_path: Path) -> None:
    data = whole(COLUMNS)
    for size in range(len(data)):
        with pytest.raises(DamagedError):
            read_all(data[:size], tmp_path)
    with pytest.raises(DamagedError):
        read_all(data + b"\0", tmp_path)


def test_a_file_that_is_cut_while_it_is_open_is_damaged(tmp_path: Path) -> None:
    with opened(whole(COLUMNS), tmp_path) as binary:
        file, damaged = ColumnFile(binary), []
        file.when_damaged = lambda: damaged.append(1)
        (tmp_path / "columns").write_bytes(b"")
        with pytest.raises(DamagedError):
            file.read("times", "i8")
    assert damaged == [1]


@pytest.mark.parametrize("data", [b"", b"flamecol", b"x" * 1000])
def test_other_files_are_damaged(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(DamagedError):
        read_all(data, tmp_path)


def test_a_column_is_asked_for_by_what_it_is(tmp_path: Path) -> None:
    with opened(whole(COLUMNS), tmp_path) as binary:
        file = ColumnFile(binary)
        with pytest.raises(DamagedError):
            file.read("times", "i4")
        with pytest.raises(DamagedError):
            file.read("no such column", "i8")
        assert "no such column" not in file
        assert file.length("ids") == 5


@pytest.mark.parametrize(
    "place",
    [
        ["<i8", 0, 1 << 62, 0],
        ["<i8", 1 << 63, 1, 0],
        ["<i8", -8, 1, 0],
        ["|O8", 0, 1, 0],
        ["<f8", 0, 1, 0],
        ["<i8", 0, 101, 0],
    ],
)
def test_columns_outside_of_the_file_are_damage(
    place: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where all checksums are right: whoever writes to the cache can have them so."""
    encode = msgspec.msgpack.encode

    def hostile(value: object) -> bytes:
        places = {"times": place}
        return encode([places, msgspec.Raw(HEAD)]) if hasattr(value, "places") else encode(value)

    monkeypatch.setattr(msgspec.msgpack, "encode", hostile)
    data = whole({"times": np.arange(100)})
    monkeypatch.undo()
    with opened(data, tmp_path) as binary, pytest.raises(DamagedError):
        ColumnFile(binary).read("times", "i8")
