"""Folded stacks as tools write them, and what else is at hand under that name."""

from __future__ import annotations

import gzip
import io
import re
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flame
from flame.core.errors import CancelledError, InputError
from flame.core.loading.many import load
from flame.core.model.frames import Frame, Kind
from flame.core.model.raw import RawStacks
from flame.core.options import LoadOptions, silent
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.core.readers.shared.frame_text import NO_NAME, parse_frame
from flame.core.readers.stacks import folded
from flame.exporters import folded as writer
from tests.conftest import TRACES
from tests.support.profiles.project_tree import project_tree

SAMPLES = sorted(TRACES.glob("speedscope/profiles/stackcollapse/*"))
OTHERS = [
    path
    for pattern in ("speedscope/profiles/*/**/*", "kineto/*", "ncu/*", "proton/*", "nsys/*")
    for path in sorted(TRACES.glob(pattern))
    if path.is_file() and "stackcollapse" not in path.parts
]

Folded = dict[tuple[str, ...], Fraction]


def read(tmp_path: Path, data: bytes) -> RawStacks:
    path = tmp_path / "stacks.txt"
    path.write_bytes(data)
    return folded.read_folded(path, LoadOptions(), silent)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folded, "_BATCH", 1023)


def said(raw: RawStacks, measure: int = -1) -> Folded:
    """Values by the names on each stack, of the last measure or another."""
    stacks, chosen = raw.stacks.build(), raw.measures[measure]
    power = 10 ** int(chosen.unit.removeprefix("1e-")) if chosen.unit != "count" else 1
    found: Folded = {}
    for stack, value in zip(raw.stack.tolist(), chosen.values.tolist(), strict=True):
        names = tuple(raw.frames[frame].name for frame in stacks.path(stack))
        found[names] = found.get(names, Fraction()) + Fraction(value, power)
    return found


def plainly(data: bytes) -> Folded:
    """The same by a plain parser: speedscope's rules, but flamegraph.pl's for blank frames."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    found: Counter[tuple[str, ...]] = Counter()
    for line in data.decode(encoding).replace("\r\n", "\n").split("\n"):
        if match := re.fullmatch(r"(.*) (\d+)", line):
            texts = match[1].rstrip("; ").split(";")
            found[tuple(parse_frame(text).name for text in texts)] += int(match[2])
    return {stack: Fraction(value) for stack, value in found.items()}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_speedscopes_own_samples(path: Path) -> None:
    data = path.read_bytes()
    assert folded.is_folded(data[: 1 << 16])
    raw = folded.read_folded(path, LoadOptions(), silent)
    assert said(raw) == plainly(data)
    assert raw.meta.format == "folded"
    assert raw.meta.path == str(path)


def test_lines_that_are_no_stacks_are_counted(tmp_path: Path) -> None:
    raw = read(tmp_path, b"# a comment 3\n#\n\na;b 1\ninvalid line\nc -5\nd 1e99999\ne nan\n7\n")
    assert said(raw) == {("a", "b"): 1}
    assert raw.warnings == ["lines that are no stack and its value, left out: 5, first: line 5"]


def test_line_numbers_count_lines_of_earlier_batches(small_batches: None, tmp_path: Path) -> None:
    lines = b"a;b 1\n" * 4_000
    raw = read(tmp_path, lines + b"oops\n" + lines)
    assert said(raw) == {("a", "b"): 8_000}
    assert raw.warnings == ["lines that are no stack and its value, left out: 1, first: line 4,001"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a;b 1\na;b 2", {("a", "b"): 3}),
        (b"\xef\xbb\xbfa 1\n", {("a",): 1}),
        (b"a;b 1\r\na;c 2\r\n", {("a", "b"): 1, ("a", "c"): 2}),
        (b"a;b\t1\na;c  2 \n", {("a", "b"): 1, ("a", "c"): 2}),
        (b"std::pair<int, int>::f;g h 3\n", {("std::pair<int, int>::f", "g h"): 3}),
        (b"a;;b 1\n;a 2\n", {("a", NO_NAME, "b"): 1, (NO_NAME, "a"): 2}),
        (b"f (x.py:1);g (x.py:2); 4\n", {("f", "g"): 4}),
        (b"main 1\nidle 2\n", {("main",): 1, ("idle",): 2}),
        (b"a;b 007\n", {("a", "b"): 7}),
        (b"a;b 0\n", {("a", "b"): 0}),
        (b"#1 main;f 3\n", {("#1 main", "f"): 3}),
        (b"\xff;\xed\xa0\x80 1\n", {(r"\xff", r"\xed\xa0\x80"): 1}),
        ("é;日本 1\n".encode(), {("é", "日本"): 1}),
        (b"a\0b;c 1\n", {("a\0b", "c"): 1}),
    ],
)
def test_spellings(tmp_path: Path, data: bytes, expected: Folded) -> None:
    raw = read(tmp_path, data)
    assert said(raw) == expected
    assert raw.warnings == []


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_in_odd_pieces(small_batches: None, tmp_path: Path, encoding: str) -> None:
    text = "\ufeff" + "á;😀 1\n" * 10_000
    assert folded.is_folded(text.encode(encoding)[: 1 << 16])
    assert said(read(tmp_path, text.encode(encoding))) == {("á", "😀"): 10_000}


def test_compressed(tmp_path: Path) -> None:
    assert said(read(tmp_path, gzip.compress(b"a;b 1\n"))) == {("a", "b"): 1}


@pytest.mark.parametrize(
    ("data", "unit", "values"),
    [
        (b"a 30.5\nb 1\n", "1e-1", [305, 10]),
        (b"a 1e6\nb 2.5e2\n", "count", [1_000_000, 250]),
        (b"a 1.0\nb 2.\n", "count", [1, 2]),
        (b"a .25\nb 1E-3\n", "1e-3", [250, 1]),
        (b"a 0.1\na 0.2\n", "1e-1", [3]),
        (b"a 0.000000001\nb 4000000000\n", "1e-9", [1, 4_000_000_000_000_000_000]),
    ],
)
def test_decimals_are_exact(tmp_path: Path, data: bytes, unit: str, values: list[int]) -> None:
    raw = read(tmp_path, data)
    assert raw.measures[0].unit == unit
    assert raw.measures[0].values.tolist() == values
    assert raw.warnings == []


def test_more_decimals_than_nine_are_said_to_be_rounded(tmp_path: Path) -> None:
    raw = read(tmp_path, b"a 0.1234567891\nb 1\n")
    assert raw.measures[0].values.tolist() == [123_456_789, 1_000_000_000]
    assert raw.warnings == ["values rounded to 9 decimals: 1"]


def test_two_numbers_on_each_line_are_before_and_after(tmp_path: Path) -> None:
    raw = read(tmp_path, b"a;b 10 20\na;c 30 0\n")
    assert [one.key for one in raw.measures] == ["samples", "before"]
    assert said(raw, 0) == {("a", "b"): 20, ("a", "c"): 0}
    assert said(raw, 1) == {("a", "b"): 10, ("a", "c"): 30}
    assert len(raw.warnings) == 1


def test_numbers_at_the_end_of_names_belong_to_them(tmp_path: Path) -> None:
    assert said(read(tmp_path, b"net;layer 0 5\nnet;layer 1 6\n")) == {
        ("net", "layer 0"): 5,
        ("net", "layer 1"): 6,
    }
    assert said(read(tmp_path, b"step 103 5\n")) == {("step 103",): 5}


def test_one_number_on_a_late_line_tells_the_same_of_all(
    small_batches: None, tmp_path: Path
) -> None:
    data = b"".join(b"f%d;layer %d 1\n" % (n, n) for n in range(1_000)) + b"a;b 1\n"
    found = said(read(tmp_path, data))
    assert len(found) == 1_001
    assert found["f7", "layer 7"] == found["a", "b"] == 1


def test_the_stack_all_has_no_frames_unless_others_begin_so(tmp_path: Path) -> None:
    assert said(read(tmp_path, b"a;b 1\nall 2\n")) == {("a", "b"): 1, (): 2}
    assert said(read(tmp_path, b"all;b 1\nall 2\n")) == {("all", "b"): 1, ("all",): 2}
    assert said(read(tmp_path, b"a;all 1\n")) == {("a", "all"): 1}


def test_kinds_are_recovered(tmp_path: Path) -> None:
    raw = read(tmp_path, b'process 7:"py";f (a/b.py:3);cudaLaunchKernel 5\n')
    stacks = raw.stacks.build()
    assert [raw.frames[frame] for frame in stacks.path(int(raw.stack[0]))] == [
        Frame(Kind.PROCESS, 'process 7:"py"'),
        Frame(Kind.PYTHON, "f", "a/b.py", 3),
        Frame(Kind.LAUNCH, "cudaLaunchKernel"),
    ]


def of_texts(found: Folded) -> Folded:
    """Names as the frames that these texts are have them."""
    renamed: Counter[tuple[str, ...]] = Counter()
    for texts, value in found.items():
        renamed[tuple(parse_frame(text).name for text in texts)] += value  # type: ignore[assignment]
    return {stack: Fraction(value) for stack, value in renamed.items()}


# What ends a line or a frame, or is white space at an end of one, is not part of it.
NAMES = st.text(st.characters(exclude_characters="\n;", exclude_categories=["Cs"]), min_size=1)
STACKS = st.lists(NAMES.filter(lambda name: name == name.strip()), min_size=1, max_size=6)
VALUES = st.integers(0, 10**12) | st.decimals(0, 10**6, places=4)


@given(st.lists(st.tuples(STACKS, VALUES), min_size=1, max_size=20), st.booleans())
def test_any_stacks_and_values(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[list[str], int | Decimal]],
    windows: bool,
) -> None:
    rows = [row for row in rows if row[0] != ["all"] and not row[0][0].startswith("#")]
    found: Folded = {("first", "x"): Fraction(1)}
    for stack, value in rows:
        found[tuple(stack)] = found.get(tuple(stack), Fraction()) + Fraction(value)
    ending = "\r\n" if windows else "\n"
    lines = ["first;x 1", *(f"{';'.join(stack)} {value}" for stack, value in rows)]
    raw = read(tmp_path_factory.mktemp("any"), ending.join(lines).encode())
    assert said(raw) == of_texts(found)
    assert raw.warnings == []


BAD = {
    "empty": b"",
    "only comments": b"# a\n# b\n",
    "only a new line": b"\n",
    "text": b"Once upon a time\nthere was a flame.\n",
    "negative": b"a;b -1\n",
    "binary": bytes(range(256)) * 300,
    "too large": b"a 4611686018427387904\n",
    "too large together": b"a 4611686018427387903\nb 1\nc 600\n" * 2,
    "huge": b"a 1e400\n",
    "a million digits": b"a " + b"9" * 1_000_000 + b"\n",
    "too large in ninths": b"a 5000000000\nb 0.000000001\n",
    "cut gzip": gzip.compress(b"a;b 1\n" * 1000)[:-20],
    "damaged gzip": gzip.compress(b"a;b 1\n" * 1000)[:20] + b"\xff" * 40,
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_cannot_be_read_says_so_in_one_line(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InputError) as raised:
        read(tmp_path, data)
    message = str(raised.value)
    assert message.startswith(str(tmp_path / "stacks.txt") + ": ")
    assert "\n" not in message
    assert len(message) < len(str(tmp_path)) + 200


@pytest.mark.deep
def test_hostile_sizes(tmp_path: Path) -> None:
    long_name = b"x" * 100_000
    deep = b";".join([b"f"] * 9_000)
    too_deep = b";".join(b"frame %d" % n for n in range(800_000))
    raw = read(tmp_path, b"%b 1\n%b 2\n%b 3\n%b;x 4\n" % (long_name, deep, too_deep, too_deep))
    found = said(raw)
    assert found["x" * 100_000,] == 1
    assert found[("f",) * 9_000] == 2
    assert found[tuple(f"frame {n}" for n in range(10_000))] == 7
    assert len(raw.frames) == 10_003
    assert raw.warnings == ["stacks of more than 10,000 frames: 2, their innermost left out"]


def test_a_load_can_be_stopped(tmp_path: Path) -> None:
    def stop(stage: str, done: int, expected: int) -> None:
        raise CancelledError("stopped")

    path = tmp_path / "stacks.txt"
    path.write_bytes(b"a;b 1\n")
    with pytest.raises(CancelledError):
        folded.read_folded(path, LoadOptions(), stop)


@pytest.mark.parametrize(
    "text",
    [
        "main;f 1\n",
        "main;f 1",
        "a;b 1\na;b 2.5\n# end\n",
        "// what speedscope skips\na;b 1\na;c 1\n",
        "main 1\nidle 2\n",
        "[no launch recorded] 5\nsgemm 7\n",
        "[unknown];f 1\n",
        "P1;T0x7f;a.py:f:3 100\n",
        "f (a b.py:1);g 7\n",
        ";".join(["a"] * 50_000) + " 1\n",
        "all 3\n",
    ],
)
def test_what_looks_like_stacks(text: str) -> None:
    assert folded.is_folded(text.encode()[: 1 << 16])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "hello\n",
        "12 13\n14 15\n",
        '{"a": 1}\n',
        '[{"name": "x;y", "dur": 1}]',
        '[\n  {\n    "a": 1\n  },\n  {\n    "b": 2\n  }\n]\n',
        "2024-01-01 12:00:01 INFO step 1 took 20\n2024-01-01 12:00:02 INFO step 2 took 30\n",
        "Epoch 1 loss 0.5\nEpoch 2 loss 0.25\n",
        "int main() {\n  int x = 1;\n  return 0;\n}\n",
        "a = 1; b = 2\nfor (;;) {\n}\n",
        "perf 12 [000] 1.5: 250 cycles:\n\tffffffff81 f+0x1 ([kernel])\n\t7f12 main (/bin/x)\n\n",
        "events: Instructions\n\nfl=a.c\nfn=alpha\n1 6\ncfn=beta\ncalls=1 10\n2 50\n",
        "#!/bin/sh\n# a script\n",
        "a,b,c\n1,2,3\n",
        "a;b;c\n1;2;3\n",
        "CUDA_VISIBLE_DEVICES=0\nPATH=/bin\n",
        "<a b=1>\n",
        "MemTotal: 5\nMemFree: 3\n",
        "var a=function(){return 1};" * 10_000,
        "\0" * 1000,
    ],
)
def test_what_does_not(text: str) -> None:
    assert not folded.is_folded(text.encode()[: 1 << 16])


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_other_formats_are_not_taken(path: Path) -> None:
    data = path.read_bytes()
    head = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    assert not folded.is_folded(head[: 1 << 16])


def exported(profile: flame.Profile) -> bytes:
    file = io.BytesIO()
    writer.write(project(profile, Selection()), file)
    return file.getvalue()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_quartet(tmp_path: Path, path: Path) -> None:
    known = load(path)
    unknown = tmp_path / "no name at all"
    unknown.write_bytes(path.read_bytes())
    once = exported(load(unknown))
    assert once == exported(known)
    again = tmp_path / "again.folded"
    again.write_bytes(once)
    loaded = load(again)
    assert exported(loaded) == once
    assert project_tree(loaded).own.sum() == project_tree(known).own.sum()
    assert len(project_tree(loaded)) == len(project_tree(known))
