"""Profiles of pprof: read back by a plain reader of Protocol Buffers, and by ``go tool pprof``."""

from __future__ import annotations

import gzip
import io
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given

from flame.core.loading.many import load
from flame.core.model.metrics import METRICS
from flame.core.model.profile import Profile
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.exporters import pprof
from flame.exporters.protobuf import number, packed, varint
from flame.exporters.stacks import NO_NAME, encodable
from tests.conftest import NSYS_TRACES
from tests.exporters.profiles import Row, profile_of, some_rows
from tests.support.paths import SAMPLES
from tests.support.profiles.project_tree import project_tree
from tests.support.waiting import PATIENCE

Fields = dict[int, list[Any]]

LINE = re.compile(r" *(\d+)(?:ns)? +[\d.]+% +[\d.]+% +\d+(?:ns)? +[\d.]+%  (.*)")
"""A row of ``go tool pprof -top``: flat, flat%, sum%, cum, cum%, name."""


class Sample(NamedTuple):
    """A stack, the outermost first, as (name, file, line), and a value per kind of sample."""

    stack: tuple[tuple[str, str, int], ...]
    values: tuple[int, ...]


class File:
    """What stands in a file, by the numbers of fields that profile.proto has."""

    def __init__(self, data: bytes) -> None:
        found = fields(gzip.decompress(data))
        self.texts = [text.decode() for text in found[6]]
        assert self.texts[0] == "" and len(set(self.texts)) == len(self.texts)
        self.kinds = [(self.text(one, 1), self.text(one, 2)) for one in map(fields, found[1])]
        self.first = self.texts[found[14][0]]
        self.time, self.duration = (found.get(field, [0])[0] for field in (9, 10))
        [mapping] = map(fields, found[3])
        assert mapping[1] == [1]
        self.program = self.text(mapping, 5)
        self.functions = {one[1][0]: one for one in map(fields, found.get(5, []))}
        self.places = {one[1][0]: self.place(one) for one in map(fields, found.get(4, []))}
        self.samples = [self.sample(fields(one)) for one in found.get(2, [])]

    def text(self, of: Fields, field: int) -> str:
        text: str = self.texts[of.get(field, [0])[0]]
        return text

    def place(self, location: Fields) -> tuple[str, str, int]:
        assert location[2] == [1], "the only mapping"
        line = fields(location[4][0])
        function = self.functions[line[1][0]]
        assert function[2] == function[3]
        found = line.get(2, [0])[0]
        assert found == function.get(5, [0])[0]
        return self.text(function, 2), self.text(function, 4), found

    def sample(self, of: Fields) -> Sample:
        stack = [self.places[place] for place in numbers(of[1][0])][::-1]
        return Sample(tuple(stack), tuple(numbers(of[2][0])))


def numbers(data: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0


def fields(data: bytes) -> Fields:
    """The fields of a message by number: ints of wire type 0, bytes of wire type 2."""
    found: Fields = defaultdict(list)
    at = 0

    def one() -> int:
        nonlocal at
        end = at
        while data[end] > 0x7F:
            end += 1
        [value] = numbers(data[at : end + 1])
        at = end + 1
        return value

    while at < len(data):
        key = one()
        assert key & 7 in (0, 2)
        value = one()
        if key & 7 == 2:
            found[key >> 3].append(data[at : at + value])
            at += value
        else:
            found[key >> 3].append(value)
    return dict(found)


def export(profile: Profile, selection: Selection | None = None, name: str = "trace") -> File:
    selection, file = selection or Selection(), io.BytesIO()
    tree = project(profile, selection)
    assert pprof.write(profile, selection, file, name=name, first=tree) == []
    return File(file.getvalue())


FORWARD = Row("gemm", 70, nvtx=("forward",), launch="cudaLaunchKernel", launch_ns=9)
LOOSE = Row("memset", 5)


def test_each_stack_has_a_value_for_every_metric_that_is_not_zero() -> None:
    file = export(profile_of([LOOSE, FORWARD]))
    kinds = [("gpu", "nanoseconds"), ("count", "count"), ("launch", "nanoseconds")]
    assert (file.kinds, file.first, file.program) == (kinds, "gpu", "trace")
    launched = ("cudaLaunchKernel", "launch", 0), ("forward", "nvtx", 0), ("gemm", "kernel", 0)
    loose = ("[no launch recorded]", "launch", 0), ("memset", "kernel", 0)
    assert file.samples == [Sample(launched, (70, 1, 9)), Sample(loose, (5, 1, 0))]


def test_the_selected_metric_is_shown_first_though_it_is_zero() -> None:
    file = export(profile_of([FORWARD]), Selection(metric="idle"))
    assert file.first == file.kinds[0][0] == "idle"
    assert file.samples[0].values[0] == 0


def test_python_functions_have_their_place() -> None:
    row = Row("gemm", 1, python=(("main", "app.py", 3), ("step", "", 0)))
    [sample] = export(profile_of([row]), Selection(("python",))).samples
    assert sample.stack == (("main", "app.py", 3), ("step", "python", 0))


def test_a_file_is_the_same_every_time() -> None:
    files = [io.BytesIO() for _ in range(2)]
    profile = profile_of([LOOSE, FORWARD])
    for file in files:
        pprof.write(profile, Selection(), file, name="x", first=project(profile))
    assert files[0].getvalue() == files[1].getvalue()


def test_it_says_when_and_how_long_was_recorded() -> None:
    profile = load(SAMPLES / "decode_small.sqlite")
    file = export(profile)
    assert profile.meta.origin is not None
    assert file.time == profile.meta.origin + profile.begin
    assert file.duration == profile.duration


def test_numbers_are_those_of_the_format() -> None:
    """Examples of https://protobuf.dev/programming-guides/encoding."""
    assert varint(150) == b"\x96\x01"
    assert number(1, 150) == b"\x08\x96\x01"
    assert packed(6, [3, 270, 86942]) == b"\x32\x06\x03\x8e\x02\x9e\xa7\x05"
    assert varint(-2) == b"\xfe" + b"\xff" * 8 + b"\x01"


def check(profile: Profile, levels: tuple[str, ...]) -> None:
    """Every metric's stacks are those of its own projection, and so is its sum."""
    file = export(profile, Selection(levels))
    for column, (key, _) in enumerate(file.kinds):
        tree = project_tree(profile, levels=",".join(levels), metric=key)
        wanted: Counter[tuple[str, ...]] = Counter()
        for node in range(len(tree)):
            if own := int(tree.own[node]):
                names = (encodable(name) or NO_NAME for name in tree.names(node))
                wanted[tuple(names)] += own
        found: Counter[tuple[str, ...]] = Counter()
        for sample in file.samples:
            if sample.values[column]:
                found[tuple(name for name, _, _ in sample.stack)] += sample.values[column]
        assert found == wanted


@given(some_rows)
def test_stacks_add_up_to_the_tree_whatever_the_names(rows: list[Row]) -> None:
    profile = profile_of(rows)
    if any(row.duration for row in rows):
        check(profile, ("python", "nvtx", "kernel"))


@pytest.mark.parametrize("trace", NSYS_TRACES)
@pytest.mark.deep
def test_real_traces_add_up(trace: str, nsys_trace: Callable[[str], Path]) -> None:
    check(load(nsys_trace(trace)), ("python", "launch", "nvtx", "kernel"))


def test_a_number_with_a_fraction_is_written_in_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "x.folded"
    path.write_text("a;b 1.25\na 2\n")
    profile, file = load(path), io.BytesIO()
    tree = project(profile)
    notes = pprof.write(profile, Selection(), file, name="x", first=tree)
    assert [sample.values for sample in File(file.getvalue()).samples] == [(200,), (125,)]
    assert notes == [f"{tree.metric.title}: times 100, as pprof has whole numbers only"]


@pytest.mark.skipif(not shutil.which("go"), reason="go tool pprof reads it: there is no go")
@pytest.mark.deep
def test_go_tool_pprof_shows_the_same_numbers(tmp_path: Path) -> None:
    profile = load(SAMPLES / "decode_small.sqlite")
    path = tmp_path / "x.pb.gz"
    with path.open("wb") as file:
        pprof.write(profile, Selection(), file, name="decode", first=project(profile))
    for metric in METRICS[:2]:
        options = ["-top", "-nodecount=0", "-nodefraction=0", f"-sample_index={metric.key}"]
        done = subprocess.run(
            ["go", "tool", "pprof", *options, "-unit=ns", str(path)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin:/usr/local/go/bin"},
        )
        tree = project_tree(profile, metric=metric.key)
        assert "File: decode" in done.stdout
        flat: Counter[str] = Counter()
        for line in done.stdout.splitlines():
            if found := LINE.match(line):
                flat[found[2]] += int(found[1])
        assert flat.total() == tree.own.sum()
        own = Counter[str]()
        for node in range(len(tree)):
            own[tree.name(node)] += int(tree.own[node])
        assert +flat == +own
