"""Cutting a trace into events: any pieces give the same, and damage costs only what it hits."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.errors import CancelledError
from flame.core.options import Progress, silent
from flame.core.readers.kineto.document import TraceDocument
from flame.core.readers.shared.file_stream import FileStream
from tests.support.writers.kinetofile import KinetoFile

WANTED = frozenset({"distributedInfo", "schemaVersion"})
HOSTILE = ['},{"ph', '"', "\\", '\\"', "}, {", "]}", "[[{", "\n", "ph", "é€😀", "\x00", "a" * 99]

names = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=5), max_size=6).map("".join)
values: st.SearchStrategy[Any] = st.recursive(
    names | st.integers(-(2**60), 2**60) | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
events = st.fixed_dictionaries(
    {"ph": st.just("X"), "name": names, "ts": st.integers(0, 2**40)},
    optional={"args": st.dictionaries(names, values, max_size=3), "nested": values},
)


class Read:
    """What a document gave."""

    def __init__(self, path: Path, piece: int = 1 << 20, progress: Progress = silent) -> None:
        self.stream = FileStream(path, progress, "reading events", piece)
        self.document = TraceDocument(self.stream, WANTED)
        self.names = [event.name for part in self.document.pieces() for event in part]
        self.stream.close()

    @property
    def damage(self) -> int:
        return self.document.damaged + self.document.decoder.bad


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Read]:
    path = tmp_path_factory.mktemp("kineto") / "trace.json"

    def from_text(text: str | bytes, piece: int = 1 << 20) -> Read:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return Read(path, piece)

    return from_text


def small_trace(count: int = 6) -> KinetoFile:
    trace = KinetoFile()
    for number in range(count):
        trace.op(f"op {number}", number * 10, number * 10 + 5, Input_Dims=[[1, 2], []])
    return trace


def trace_names(trace: KinetoFile) -> list[str]:
    return [event["name"] for event in trace.events]


@given(
    st.lists(events, max_size=12),
    st.integers(1, 300),
    st.sampled_from([None, 0, 2]),
    st.dictionaries(names.filter(lambda key: key != "traceEvents"), values, max_size=3),
    st.booleans(),
)
def test_any_pieces_give_the_events_in_their_order(
    read: Callable[..., Read],
    recorded: list[dict[str, Any]],
    piece: int,
    indent: int | None,
    top: dict[str, Any],
    ascii_only: bool,
) -> None:
    whole = {**top, "schemaVersion": 1, "traceEvents": recorded, "distributedInfo": {"rank": 3}}
    found = read(json.dumps(whole, indent=indent, ensure_ascii=ascii_only), piece)
    assert found.names == [event["name"] for event in recorded]
    assert (found.document.cut_at, found.damage) == (None, 0)
    assert json.loads(found.document.top["distributedInfo"]) == {"rank": 3}
    assert found.document.top["schemaVersion"] == b"1"


def test_events_come_in_pieces_and_not_all_at_once(tmp_path: Path) -> None:
    path = small_trace(3000).write(tmp_path / "trace.json")
    stream = FileStream(path, silent, "reading events", 1 << 14)
    sizes = [len(part) for part in TraceDocument(stream, WANTED).pieces()]
    stream.close()
    assert sum(sizes) == 3000
    assert max(sizes) < 300
    assert len(stream.window) < 1 << 16


def test_bare_array_is_a_trace(read: Callable[..., Read]) -> None:
    trace = small_trace()
    found = read(json.dumps(trace.events))
    assert (found.names, found.document.cut_at) == (trace_names(trace), None)


def test_byte_order_mark_is_passed_over(read: Callable[..., Read]) -> None:
    trace = small_trace()
    assert read(b"\xef\xbb\xbf" + trace.text().encode()).names == trace_names(trace)


@pytest.mark.parametrize("text", ["", " ", "5", '"text"', "null", "{", "[", '{"traceEvents": 5}'])
def test_what_holds_no_events_gives_none(read: Callable[..., Read], text: str) -> None:
    assert read(text).names == []


def test_cut_off_anywhere_gives_the_events_before_and_says_where(
    read: Callable[..., Read],
) -> None:
    trace = small_trace(3)
    text = trace.text(indent=1).encode()
    ends = [text.index(b'"op %d"' % number) for number in range(3)]
    for cut in range(1, len(text)):
        for piece in (64, 1 << 20):
            found = read(text[:cut], piece)
            complete = sum(end < cut for end in ends)
            assert found.names in (
                trace_names(trace)[:complete],
                trace_names(trace)[: max(complete - 1, 0)],
            )
            assert (found.document.cut_at, found.damage) == (cut, 0)
    assert read(text).document.cut_at is None


def test_cut_off_archive_gives_what_was_written_before(tmp_path: Path) -> None:
    trace, rng = KinetoFile(), random.Random(1)
    for number in range(2000):
        trace.op(f"op {rng.random()}", number, number + 1)
    path = trace.write(tmp_path / "trace.json.gz")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    found = Read(path)
    assert 500 < len(found.names) < 1500
    assert found.names == trace_names(trace)[: len(found.names)]
    assert found.stream.damage == "cut off"
    assert found.document.cut_at is not None


@pytest.mark.parametrize("events", [100, 5_000])
def test_damaged_archive_gives_what_comes_before_the_damage(events: int, tmp_path: Path) -> None:
    trace, rng = KinetoFile(), random.Random(1)
    for number in range(events):
        trace.op(f"op {rng.random()}", number, number + 1)
    path = trace.write(tmp_path / "trace.json.gz")
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = b"\xff" * 2000
    path.write_bytes(data)
    found = Read(path)
    assert len(found.names) > events // 5
    assert found.document.cut_at is not None or found.damage


ODD = {
    "not a number": ('"x": 1', '"x": NaN'),
    "infinity as C++ prints it": ('"x": 1', '"x": -inf'),
    "nan as C++ prints it": ('"x": 1', '"x": nan'),
    "control character": ("middle", "mid\x01dle"),
    "line break in a string": ("middle", "mid\ndle"),
    "windows path": ("middle", r"C:\lib\Users\m"),
    "half a character": ("middle", r"\ud800"),
    "number in a text": ('"x": 1', '"correlation": "12"'),
    "key twice": ('"x": 1', '"x": 1, "x": 2'),
    "huge number": ('"x": 1', '"x": 1e999'),
    "long number": ('"x": 1', f'"x": {"9" * 400}'),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_json_costs_no_event(read: Callable[..., Read], odd: str) -> None:
    trace = small_trace()
    trace.op("middle", 100, 105, x=1)
    trace.op("last", 200, 205)
    found = read(trace.text().replace(*ODD[odd]))
    assert len(found.names) == 8
    assert (found.names[:6], found.names[7]) == (trace_names(trace)[:6], "last")
    assert (found.document.cut_at, found.damage) == (None, 0)


def test_bytes_that_are_no_text_cost_no_event(read: Callable[..., Read]) -> None:
    trace = small_trace()
    found = read(trace.text().encode().replace(b"op 3", b"op \xff\xfe"))
    assert found.names[3] == "op ��"
    assert len(found.names) == 6


DAMAGED = {
    "wrong type": ('"name": "op 3"', '"name": ["op 3"]'),
    "number beyond 64 bits": ('"ts": 0.03', f'"ts": {"9" * 40}'),
    "infinite time": ('"ts": 0.03', '"ts": 1e999'),
    "no quote": ('"op 3"', '"op 3'),
    "no colon": ('"name": "op 3"', '"name" "op 3"'),
    "zeros": ('"name": "op 3"', "\0" * 50),
    "brackets": ('"op 3"', "]]]"),
    "an opening too many": ('"op 3"', '"op 3", {'),
    "a closing too many": ('"op 3"', '"op 3"}'),
    "no event": ('{"ph": "X", "cat": "cpu_op", "name": "op 3"', '5, {"name": 5'),
}


@pytest.mark.parametrize("piece", [64, 1 << 20])
@pytest.mark.parametrize("damage", DAMAGED)
def test_damage_costs_the_event_it_hits(read: Callable[..., Read], damage: str, piece: int) -> None:
    trace = small_trace()
    before, after = DAMAGED[damage]
    text = trace.text()
    assert before in text
    found = read(text.replace(before, after), piece)
    # An event closed too early is one without a time, which the reader leaves out.
    spared = [name for name in found.names if name != "op 3" or damage != "a closing too many"]
    assert spared == [name for name in trace_names(trace) if name != "op 3"]
    assert found.damage >= 1
    assert found.document.cut_at is None


@given(st.data())
def test_random_damage_never_raises_and_never_invents(
    read: Callable[..., Read], data: st.DataObject
) -> None:
    trace = small_trace(12)
    text = bytearray(trace.text().encode())
    at = data.draw(st.integers(text.index(b"[") + 1, len(text) - 1))
    damage = data.draw(st.binary(max_size=9) | st.text('"\\{}[],:', max_size=3).map(str.encode))
    text[at : at + data.draw(st.integers(0, 9))] = damage
    found = read(bytes(text), data.draw(st.sampled_from([64, 1 << 20])))
    unhurt = [name for name in found.names if name in trace_names(trace)]
    assert len(unhurt) == len(set(unhurt))
    assert len(found.names) <= 13  # damage may be `{}`
    assert len(unhurt) >= 9 or b"]" in damage  # which may end the events


def test_deeply_nested_value_costs_one_event_at_most(read: Callable[..., Read]) -> None:
    trace = small_trace()
    text = trace.text().replace('"op 3"', '"op 3", "deep": ' + "[" * 100_000 + "]" * 100_000)
    # CPython 3.14 goes by the room on the stack, and may read it.
    names = [name for name in read(text).names if name != "op 3"]
    assert names == [name for name in trace_names(trace) if name != "op 3"]


def test_times_a_float_cannot_hold_are_decoded_exactly(read: Callable[..., Read]) -> None:
    read_exactly = read('{"traceEvents": [{"name": "a", "ts": 1700000000000000.123, "dur": 1.5}]}')
    assert read_exactly.names == ["a"]


def test_progress_goes_up_to_the_size_on_disk_and_may_stop_the_load(tmp_path: Path) -> None:
    path = small_trace(500).write(tmp_path / "trace.json.gz")
    size, seen = path.stat().st_size, []

    def note(stage: str, done: int, expected: int) -> None:
        assert (stage, expected) == ("reading events", size)
        seen.append(done)

    Read(path, 1 << 12, note)
    assert seen == sorted(seen)
    assert seen[-1] == size

    def stop(stage: str, done: int, expected: int) -> None:
        raise CancelledError("enough")

    with pytest.raises(CancelledError):
        Read(path, 1 << 12, stop)


def test_plain_file_and_archive_are_the_same(tmp_path: Path) -> None:
    trace = small_trace(100)
    plain, packed = (trace.write(tmp_path / f"trace.{end}") for end in ("json", "json.gz"))
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert Read(plain).names == Read(packed).names == trace_names(trace)
