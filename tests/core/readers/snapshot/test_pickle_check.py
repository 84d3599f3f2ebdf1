"""The check of a pickle, against what Python's own `pickletools` finds in it."""

from __future__ import annotations

import pickle
import pickletools
import struct
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from typing import NamedTuple, NoReturn

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from flame.core.errors import CancelledError, InputError
from flame.core.readers.snapshot.pickle_check import check_pickle
from flame.core.readers.snapshot.pickle_file import unpickle
from tests.support.tiers import examples

PLAIN = {
    *("FRAME", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE"),
    *("EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_DICT", "SETITEM", "SETITEMS", "MEMOIZE", "BINGET"),
    *("LONG_BINGET", "BINPUT"),
}
INTEGERS = {"BININT", "BININT1", "BININT2", "LONG1"}
LEAST_MEMO = 1 << 16
DAMAGED = (
    *(pickle.UnpicklingError, EOFError, LookupError, TypeError, ValueError),
    *(AttributeError, OverflowError),
)


class Instruction(NamedTuple):
    """An opcode by its name, its argument, and the bytes that it takes."""

    name: str
    value: object
    size: int


def instructions(data: bytes) -> Iterator[Instruction]:
    """All of ``data`` by `pickletools`; ValueError where that finds an opcode that is none."""
    found = [(code.name, value, at or 0) for code, value, at in pickletools.genops(data)]
    ends = [at for _, _, at in found[1:]] + [found[-1][2] + 1]
    for (name, value, at), end in zip(found, ends, strict=True):
        yield Instruction(name, value, end - at)


def is_plain(data: bytes) -> bool:
    """Whether ``data`` keeps the rules that are written in `pickle_check`."""
    try:
        found = list(instructions(data))
    except ValueError:
        return False
    kept = all(is_allowed(one, len(data)) for one in found if one.name != "TUPLE2")
    return kept and sum(one.size for one in found) == len(data) and tuples_are_pairs(found)


def is_allowed(one: Instruction, size: int) -> bool:
    if one.name == "LONG_BINPUT":
        return isinstance(one.value, int) and one.value < max(size, LEAST_MEMO)
    if one.name == "PROTO":
        return one.value in (2, 3, 4, 5)
    if one.name == "LONG1":
        return one.size <= 2 + 9
    return one.name in PLAIN | INTEGERS | {"STOP"}


def tuples_are_pairs(found: list[Instruction]) -> bool:
    """Whether each tuple is of two integers just before it, each perhaps kept in the memo."""
    names = [one.name for one in found]
    return all(ends_in_integers(names[:at]) for at, name in enumerate(names) if name == "TUPLE2")


def ends_in_integers(names: list[str]) -> bool:
    for _ in range(2):
        if names[-1:] == ["MEMOIZE"]:
            names = names[:-1]
        if not names or names[-1] not in INTEGERS:
            return False
        names = names[:-1]
    return True


NUMBERS = st.sampled_from([0, 1, 255, 256, (1 << 16) - 1, 1 << 16, 1 << 24, (1 << 32) - 1])
SHORT = st.sampled_from([b"", b"a", b"abc.", b"K\x01cos\n.", b"x" * 255])
ODD = st.sampled_from([bytes([code]) for code in range(256)])
LITTLE = st.binary(max_size=9)


def _number(code: bytes, form: str) -> st.SearchStrategy[bytes]:
    most = (1 << 8 * struct.calcsize(form)) - 1
    return NUMBERS.map(lambda one: code + struct.pack(form, min(one, most)))


OPCODES = st.one_of(
    st.sampled_from([b"(", b"N", b"\x88", b"\x89", b"]", b"}", b"a", b"e", b"s", b"u", b"\x94"]),
    *(_number(*one) for one in [(b"K", "<B"), (b"M", "<H"), (b"J", "<I"), (b"j", "<I")]),
    *(_number(*one) for one in [(b"q", "<B"), (b"h", "<B"), (b"r", "<I"), (b"\x80", "<B")]),
    st.binary(min_size=0, max_size=11).map(lambda one: b"\x8a" + bytes([len(one)]) + one),
    SHORT.map(lambda text: b"\x8c" + bytes([len(text)]) + text),
    SHORT.map(lambda text: b"X" + struct.pack("<I", len(text)) + text),
    st.binary(min_size=8, max_size=8).map(lambda one: b"G" + one),
    st.binary(min_size=8, max_size=8).map(lambda one: b"\x95" + one),
    st.tuples(*[st.sampled_from([b"K\x01", b"M\x01\x02", b"K\x02\x94", b"\x8a\x01\x05"])] * 2).map(
        lambda pair: b"".join(pair) + b"\x86"
    ),
)
SELDOM = st.one_of(st.just(b"\x86"), ODD, st.tuples(ODD, LITTLE).map(b"".join))
STREAMS = st.builds(
    lambda opcodes, more, at, end: b"".join([*opcodes[:at], *more, *opcodes[at:]]) + end,
    st.lists(OPCODES, max_size=12),
    st.lists(SELDOM, max_size=1),
    st.integers(0, 12),
    st.sampled_from([b".", b".", b".", b"", b"..", b".\x00"]),
)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise AssertionError(f"looks up {module}.{name}")

    def persistent_load(self, pid: object) -> NoReturn:
        raise AssertionError(f"asks for {pid!r}")


@given(STREAMS)
@examples(5)
@example(b"K\x01K\x02\x94\x86.")
@example(b"K\x01\x94\x94K\x02\x86.")
@example(b"K\x01K\x02\x86K\x03\x86.")
@example(b"}r\xff\xff\x00\x00.")
@example(b"}r\x00\x00\x01\x00.")
@example(b"X\x00\x00\x00\x00.")
@example(b".")
def test_what_passes_is_what_keeps_the_rules(data: bytes) -> None:
    try:
        check_pickle(data)
        passes = True
    except InputError:
        passes = False
    assert passes == is_plain(data)
    if passes:
        look_up_nothing(data)


def look_up_nothing(data: bytes) -> None:
    with suppress(*DAMAGED):
        _Unpickler(BytesIO(data)).load()


@pytest.mark.parametrize("size", [1 << 16, (1 << 16) + 1, 1 << 17, 1 << 20, (1 << 20) + 9])
def test_numbers_in_the_memo_are_below_the_size(size: int) -> None:
    for number in (0, (1 << 16) - 1, size - 1, size, size + 1, (1 << 20) + 9, 1 << 24, 1 << 31):
        data = b"}r" + struct.pack("<I", number)
        data += b"N" * (size - len(data) - 1) + b"."
        if number < size:
            check_pickle(data)
        else:
            with pytest.raises(InputError, match="numbers an object"):
                check_pickle(data)


def test_a_large_pickle_is_checked_and_unpickled_in_pieces() -> None:
    """Nothing can be heard of between them, and what has been read goes."""
    data = pickle.dumps({"segments": [[{"a": at, "b": str(at)}] for at in range(80_000)]}, 4)
    ticks, told = list[int](), list[tuple[int, int]]()
    check_pickle(data, lambda: ticks.append(1))
    assert len(ticks) > len(data) >> 20
    pieces = [data[at : at + 1_000_000] for at in range(0, len(data), 1_000_000)]
    root = unpickle(pieces, lambda stage, done, size: told.append((done, size)))
    assert not pieces and root == pickle.loads(data)
    assert len(told) > len(data) >> 20
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert {size for _, size in told} == {len(data)}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("size", [1, 7, 65_536])
def test_pieces_of_any_size_are_the_same_objects(protocol: int, size: int) -> None:
    root = {"segments": [{"name": "f" * 200_000, "sizes": list(range(1_000))}] * 3}
    data = pickle.dumps(root, protocol)
    assert unpickle([data[at : at + size] for at in range(0, len(data), size)]) == root


def test_unpickling_ends_where_it_is_to_stop() -> None:
    def stop(stage: str, done: int, size: int) -> None:
        if done:
            raise CancelledError("stopped")

    data = pickle.dumps(["x" * 100 + str(at) for at in range(100_000)], 4)
    with pytest.raises(CancelledError):
        unpickle([data], stop)
