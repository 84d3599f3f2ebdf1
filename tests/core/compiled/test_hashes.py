"""No file can choose texts or rows that collide: that takes the seed, which no file knows."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from ctypes import c_int64, c_uint64, c_void_p
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from csrc import build
from flame.core.columns import U1

HEADER = build.HERE / "flamecore.h"
DECODER = build.HERE / "decode.c"
CODE = """
#include "flamecore.h"
API void hash_all(const uint8_t* items, int64_t count, int64_t size, uint64_t seed, uint64_t* to) {
  for (int64_t i = 0; i < count; i++) to[i] = hash_bytes(items + i * size, size, seed);
}
API void hash_rows(const int64_t* items, int64_t count, int64_t size, uint64_t seed, uint64_t* to) {
  uint64_t keys[MOST_COLUMNS + 1];
  const int32_t width = (int32_t)size / 8;
  make_keys(seed, width, keys);
  for (int64_t i = 0; i < count; i++) to[i] = hash_integers(items + i * width, width, keys);
}
"""
SLOTS = 1 << 10

Hash = Callable[[U1, int], NDArray[np.uint64]]


@pytest.fixture(scope="module", params=["hash_all", "hash_rows"])
def hashes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Hash:
    """Hashes items, u8[n, size], by a seed, as the compiled part does bytes, or integers."""
    folder = tmp_path_factory.mktemp("hashes")
    (folder / "hashes.c").write_text(CODE)
    try:
        command = [*build.compiler(), *build.LANGUAGE, "-O1", "-shared", f"-I{build.HERE}"]
    except build.BuildError as error:
        pytest.skip(str(error))
    subprocess.run([*command, "hashes.c", "-o", "hashes.so"], cwd=folder, check=True)
    library: Any = ctypes.CDLL(str(folder / "hashes.so"))
    function = library[request.param]
    function.argtypes = [c_void_p, c_int64, c_int64, c_uint64, c_void_p]

    def hash_items(items: U1, seed: int) -> NDArray[np.uint64]:
        if request.param == "hash_rows":  # an integer is of eight bytes
            items = np.pad(items, ((0, 0), (0, -items.shape[1] % 8)))
        items = np.ascontiguousarray(items)
        found = np.zeros(len(items), np.uint64)
        function(items.ctypes.data, *items.shape, seed, found.ctypes.data)
        return found

    return hash_items


def numbered(size: int, count: int) -> U1:
    """Items of ``size`` bytes that differ in their last ones, u8[count, size]."""
    items = np.full((count, size), 120, np.uint8)
    number = np.arange(count, dtype=np.uint32)[:, None].view(np.uint8)
    items[:, size - min(size, 4) :] = number[:, :size]
    return items


@pytest.mark.parametrize("size", [4, 8, 12, 16, 24, 40, 41])
def test_what_collides_under_one_seed_does_not_under_another(size: int, hashes: Hash) -> None:
    items = numbered(size, 200 * SLOTS)
    chosen = items[hashes(items, 1) % SLOTS == 0]
    assert len(chosen) > 100
    assert len(np.unique(hashes(chosen, 1) % SLOTS)) == 1
    for seed in (0, 2, 1 << 63, 0x9E3779B97F4A7C15, (1 << 64) - 1):
        assert len(np.unique(hashes(chosen, seed) % SLOTS)) > len(chosen) / 2


@pytest.mark.parametrize(("size", "at"), [(12, 0), (16, 0), (24, 0), (24, 8), (41, 8), (48, 16)])
def test_no_known_word_hides_what_stands_beside_it(size: int, at: int, hashes: Hash) -> None:
    words = [0, *(int(word, 16) for word in re.findall(r"0x([0-9A-F]{16})", HEADER.read_text()))]
    words += [0xA0761D6478BD642F, 0xE7037ED1A0B428DB]  # of wyhash, which uses them so
    items = numbered(size, 5000)
    for word in words:
        items[:, at : at + 8] = np.array([word], np.uint64).view(np.uint8)
        for seed in (5, 1 << 40):
            assert len(np.unique(hashes(items, seed))) == len(items)


def test_headers_of_rows_that_end_in_nulls_are_told_apart(hashes: Hash) -> None:
    header = np.zeros((256, 20), np.uint8)
    header[:, :9] = [5, 5, 1, 0, 0, 0, 0, 6, 0]  # NVTX_EVENTS, of which most columns are NULL
    header[:, 6] = np.arange(256)  # the length of the text
    known = re.search(r"HEADER_SEED 0x([0-9A-F]{16})", DECODER.read_text())
    assert known is not None
    assert len(np.unique(hashes(header, int(known[1], 16)) % 256)) > 128
