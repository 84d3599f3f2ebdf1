"""Packed exports: unpacked once, into the cache, and read as the export itself."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.files.bounds import cache_entries
from flame.core.loading.many import load
from flame.core.readers.shared import unpacking
from tests.support.paths import SAMPLES
from tests.support.zstd import zstd

SAMPLE = SAMPLES / "decode_small.sqlite"
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": zstd.compress,
    "": partial(lzma.compress, preset=0),
}


def packed(tmp_path: Path, suffix: str = ".gz") -> Path:
    path = tmp_path / f"trace.sqlite{suffix}"
    path.write_bytes(PACK[suffix](SAMPLE.read_bytes()))
    return path


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("suffix", PACK)
def test_it_is_what_the_export_is(suffix: str, tmp_path: Path) -> None:
    path = packed(tmp_path, suffix)
    found, plain = load(path), load(SAMPLE)
    assert found.activities.start.tolist() == plain.activities.start.tolist()
    assert found.frames.frames == plain.frames.frames
    assert found.meta.path == str(path)
    # What is read later, too.
    assert found.launches is not None
    assert plain.launches is not None
    assert found.launches.config.tolist() == plain.launches.config.tolist()


def test_it_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path)
    load(path)
    assert [entry.path.suffix for entry in cache_entries()] == [".sqlite"]
    monkeypatch.setattr(unpacking, "open_binary", None)
    load(path)


def test_nothing_is_left_of_one_that_is_cut_off(tmp_path: Path) -> None:
    path = packed(tmp_path)
    path.write_bytes(path.read_bytes()[:-2_000])
    with pytest.raises(InputError, match="damaged: not a whole gzip file") as raised:
        load(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert cache_entries() == []


def test_a_disk_without_room_is_not_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "disk_usage", lambda _: (1_000_000, 900_000, 100_000))
    with pytest.raises(InputError, match=r"too large to unpack: only 100 kB are left on the disk"):
        load(packed(tmp_path))
