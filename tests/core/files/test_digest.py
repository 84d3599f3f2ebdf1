"""Files are told apart by content: all of it, or so much of a large one as can be read soon."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flame.core.errors import CancelledError
from flame.core.files import digest
from flame.core.files.digest import file_digest

PIECE = 1 << 20


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four pieces are all that is read."""
    monkeypatch.setattr(digest, "_MOST_PIECES", 4)


def silent() -> None:
    pass


def written(path: Path, data: bytes | bytearray, when: int = 1) -> str:
    path.write_bytes(data)
    os.utime(path, ns=(when, when))
    return file_digest(path, silent)


def test_the_same_content_is_the_same_at_any_time_and_place(tmp_path: Path) -> None:
    data = os.urandom(4 * PIECE)
    assert written(tmp_path / "a", data, 1) == written(tmp_path / "b", data, 2)


@pytest.mark.parametrize("size", [1, PIECE - 1, PIECE, PIECE + 1, 4 * PIECE])
def test_every_byte_of_a_small_file_counts(size: int, tmp_path: Path) -> None:
    data = bytearray(size)
    seen = {written(tmp_path / "a", data)}
    places = sorted({0, size // 2, size - 1, min(PIECE, size - 1)})
    for place in places:
        data[place] ^= 1
        seen.add(written(tmp_path / "a", data))
    assert len(seen) == 1 + len(places)


def test_sizes_of_the_same_zeros_differ(tmp_path: Path) -> None:
    assert written(tmp_path / "a", bytes(5)) != written(tmp_path / "a", bytes(6))


def test_head_tail_size_and_time_of_a_large_file_count(tmp_path: Path) -> None:
    data = bytearray(9 * PIECE + 5)
    seen = [written(tmp_path / "a", data, 1), written(tmp_path / "a", data, 2)]
    for place in (0, PIECE - 1, len(data) - PIECE, len(data) - 1):
        data[place] ^= 1
        seen.append(written(tmp_path / "a", data))
    seen.append(written(tmp_path / "a", data + b"0"))
    assert len(set(seen)) == len(seen)
    assert written(tmp_path / "b", data + b"0") == seen[-1]


def test_no_more_of_a_large_file_is_read(tmp_path: Path) -> None:
    heard: list[int] = []
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 40)
    file_digest(tmp_path / "a", lambda: heard.append(1))
    assert len(heard) == 4


def test_it_can_be_stopped(tmp_path: Path) -> None:
    def stop() -> None:
        raise CancelledError("stopped")

    (tmp_path / "a").write_bytes(b"1")
    with pytest.raises(CancelledError):
        file_digest(tmp_path / "a", stop)
