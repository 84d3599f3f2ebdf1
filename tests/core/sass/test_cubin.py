"""Which functions a cubin has: a real one, one with very many sections, and damaged ones."""

from __future__ import annotations

import os
import random
import struct
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.sass.cubin import CubinFunction, find_functions
from tests.support.paths import SAMPLES

CUBIN = SAMPLES / "llm_kernels.cubin"
SLOW_DIVISION = "$__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath"
# As readelf -sSW shows them.
FUNCTIONS = {
    "_ZN3llm12add_rms_normEPfPKfS2_S0_i": CubinFunction(
        20, ".text._ZN3llm12add_rms_normEPfPKfS2_S0_i", 0, 3584
    ),
    "_ZN3llm7softmaxEPKfPfi": CubinFunction(21, ".text._ZN3llm7softmaxEPKfPfi", 0, 3840),
    SLOW_DIVISION: CubinFunction(6, ".text._ZN3llm12add_rms_normEPfPKfS2_S0_i", 0x6C0, 1856),
}
SECTIONS_AT = 40  # in the header


def functions(data: bytes, folder: Path, *names: str) -> dict[str, CubinFunction]:
    path = folder / "x.cubin"
    path.write_bytes(data)
    file = os.open(path, os.O_RDONLY)
    try:
        return find_functions(file, names or FUNCTIONS, lambda: None)
    finally:
        os.close(file)


def test_a_kernel_and_what_it_calls(tmp_path: Path) -> None:
    assert functions(CUBIN.read_bytes(), tmp_path) == FUNCTIONS


def test_only_functions_that_are_asked_for_and_there(tmp_path: Path) -> None:
    # The end of a name, a section, something else, and nothing are no functions.
    others = ("softmaxEPKfPfi", ".text._ZN3llm7softmaxEPKfPfi", ".shstrtab", "", "x" * 100_000)
    assert functions(CUBIN.read_bytes(), tmp_path, "_ZN3llm7softmaxEPKfPfi", *others) == {
        "_ZN3llm7softmaxEPKfPfi": FUNCTIONS["_ZN3llm7softmaxEPKfPfi"]
    }


@pytest.mark.parametrize("place", [1 << 40, (1 << 63) - 1, (1 << 64) - 1])
def test_a_table_that_is_nowhere_is_damage(place: int, tmp_path: Path) -> None:
    data = bytearray(CUBIN.read_bytes())
    at = int.from_bytes(data[SECTIONS_AT : SECTIONS_AT + 8], "little")
    names = int.from_bytes(data[62:64], "little")
    struct.pack_into("<QQ", data, at + names * 64 + 24, place, 1 << 27)
    tracemalloc.start()
    try:
        functions(bytes(data), tmp_path)
    except InputError as error:
        assert "damaged cubin" in str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def with_very_many_sections(data: bytes) -> bytes:
    """The cubin as it would be with more sections than its header can say, and symbols of them."""
    at, names = (int.from_bytes(data[o : o + n], "little") for o, n in ((40, 8), (62, 2)))
    count = int.from_bytes(data[60:62], "little")
    table = bytearray(data[at : at + count * 64])
    rows = [table[i : i + 64] for i in range(0, len(table), 64)]
    symbols = next(row for row in rows if row[4] == 2)
    offset, size = struct.unpack_from("<QQ", symbols, 24)
    body = bytearray(data)
    indices = b""
    for place in range(offset, offset + size, 24):
        indices += struct.pack("<I", int.from_bytes(body[place + 6 : place + 8], "little"))
        body[place + 6 : place + 8] = b"\xff\xff"
    struct.pack_into("<Q", rows[0], 32, count + 1)
    struct.pack_into("<I", rows[0], 40, names)
    added = struct.pack("<IIQQQQIIQQ", 0, 18, 0, 0, len(body), len(indices), 0, 0, 4, 4)
    body[40:48] = struct.pack("<Q", len(body) + len(indices))
    body[60:64] = b"\0\0\xff\xff"
    return bytes(body) + indices + b"".join(rows) + added


def test_more_sections_than_the_header_can_say(tmp_path: Path) -> None:
    assert functions(with_very_many_sections(CUBIN.read_bytes()), tmp_path) == FUNCTIONS


OTHER_FILES = {
    "empty": b"",
    "text": b"flame-fake 1\nkernel gemm 100\n" * 10,
    "head only": CUBIN.read_bytes()[:64],
    "32 bits": b"\x7fELF\x01\x01" + CUBIN.read_bytes()[6:],
    "big-endian": b"\x7fELF\x02\x02" + CUBIN.read_bytes()[6:],
    "a program": Path(sys.executable).read_bytes()[:100_000],
}


@pytest.mark.parametrize("data", OTHER_FILES.values(), ids=OTHER_FILES)
def test_other_files_are_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no cubin|damaged cubin"):
        functions(data, tmp_path)


def read_somehow(data: bytes, folder: Path) -> None:
    """What can be read of a damaged cubin are functions with possible places, in no time."""
    begin = time.thread_time()
    try:
        found = functions(data, folder)
    except InputError:
        found = {}
    assert all(one.start >= 0 <= one.symbol for one in found.values())
    assert time.thread_time() - begin < 2


def test_cut_anywhere(tmp_path: Path) -> None:
    data = CUBIN.read_bytes()
    for end in range(0, len(data), 701):
        read_somehow(data[:end], tmp_path)


def test_bits_flipped_anywhere_in_its_tables(tmp_path: Path) -> None:
    data, draw = CUBIN.read_bytes(), random.Random(7)
    sections = int.from_bytes(data[SECTIONS_AT : SECTIONS_AT + 8], "little")
    places = [*range(64), *range(sections, len(data))]
    for _ in range(300):
        spoilt = bytearray(data)
        for place in draw.choices(places, k=draw.choice([1, 3, 30])):
            spoilt[place] ^= 1 << draw.randrange(8)
        read_somehow(bytes(spoilt), tmp_path)


def test_tables_that_say_they_are_huge(tmp_path: Path) -> None:
    data = bytearray(CUBIN.read_bytes())
    sections = int.from_bytes(data[SECTIONS_AT : SECTIONS_AT + 8], "little")
    for place in range(sections, len(data), 64):
        data[place + 32 : place + 40] = b"\xff" * 8
    read_somehow(bytes(data), tmp_path)
    data[SECTIONS_AT : SECTIONS_AT + 8] = b"\xff" * 8
    read_somehow(bytes(data), tmp_path)
