"""pprof profiles: what samples, places and values become, and what is refused."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.cli.main import main
from flame.core.errors import InputError
from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, silent
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.core.readers.formats import FileHead, detect_format
from flame.core.readers.stacks.pprof import read_pprof
from flame.core.readers.stacks.pprof_profile import decode_profile
from flame.core.readers.stacks.pprof_wire import NumberRuns
from flame.exporters.folded import write
from tests.support.paths import SAMPLES
from tests.support.writers.pproffile import PprofFile, chunk, number, varint

CPU = ("cpu", "nanoseconds")
MAIN, WORK = ("main", "main.go", 3), ("work", "work.go", 7)


def opened(tmp_path: Path, file: PprofFile) -> Profile:
    path = tmp_path / "cpu.pb"
    path.write_bytes(file.data())
    return load(path)


def stacks_of(profile: Profile, metric: int = 0) -> dict[str, int]:
    """Stacks as text, root first, with the sum of a metric."""
    tree = project(profile, Selection(metric=profile.metrics[metric].key))
    write(tree, file := io.BytesIO())
    lines = file.getvalue().decode().splitlines()
    return {stack: int(value) for stack, _, value in (line.rpartition(" ") for line in lines)}


def refusal(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "cpu.pb"
    path.write_bytes(data)
    with pytest.raises(InputError) as raised:
        read_pprof(path, LoadOptions(), silent)
    text = str(raised.value)
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


def test_the_innermost_place_comes_first_and_inlined_functions_are_frames(tmp_path: Path) -> None:
    file = PprofFile(("samples", "count"), CPU)
    outer = file.place(MAIN)
    inner = file.place(("inlined", "work.go", 9), WORK)
    file.sample([inner, outer], 1, 10)
    file.sample([outer], 2, 5)
    profile = opened(tmp_path, file)
    assert stacks_of(profile) == {"main;work;inlined": 10, "main": 5}
    assert (profile.metrics[0].key, profile.metrics[0].unit) == ("cpu", "ns")
    assert stacks_of(profile, 1) == {"main;work;inlined": 1, "main": 2}


def test_the_default_kind_of_value_is_the_one_the_file_names(tmp_path: Path) -> None:
    file = PprofFile(("space", "bytes"), ("objects", "count"), default="space")
    file.sample([file.place(MAIN)], 512, 2)
    profile = opened(tmp_path, file)
    assert [one.title for one in profile.metrics] == ["space", "objects"]
    assert profile.metrics[0].unit == "bytes"


@pytest.mark.parametrize(("unit", "value"), [("microseconds", 7_000), ("ms", 7_000_000)])
def test_times_of_any_unit_are_nanoseconds(unit: str, value: int, tmp_path: Path) -> None:
    file = PprofFile(("wall", unit))
    file.sample([file.place(MAIN)], 7)
    assert stacks_of(opened(tmp_path, file)) == {"main": value}


def test_another_unit_is_told(tmp_path: Path) -> None:
    file = PprofFile(("power", "microjoules"))
    file.sample([file.place(MAIN)], 7)
    assert opened(tmp_path, file).metrics[0].title == "power (microjoules)"


def test_a_place_without_a_function_is_its_file_and_address(tmp_path: Path) -> None:
    file = PprofFile(CPU)
    file.mapping(1, 0x7F00_0000, 0x1000, "/usr/lib/libx.so")
    known = file.place(address=0x7F00_0020, mapping=1)
    file.sample([known, file.place(address=0x40)], 3)
    profile = opened(tmp_path, file)
    assert stacks_of(profile) == {"0x40;libx.so+0x1020": 3}
    assert Kind.NATIVE in set(profile.frames.kind)


def test_python_files_make_python_frames(tmp_path: Path) -> None:
    file = PprofFile(CPU)
    file.sample([file.place(("step", "train.py", 12))], 3)
    frame = next(one for one in opened(tmp_path, file).frames.frames if one.name == "step")
    assert (frame.kind, frame.file, frame.line) == (Kind.PYTHON, "train.py", 12)


def test_what_a_sample_names_and_the_file_lacks_is_shown_as_absent(tmp_path: Path) -> None:
    file = PprofFile(CPU)
    file.sample([99, file.place(MAIN)], 3)
    assert stacks_of(opened(tmp_path, file)) == {"main;[not in the file]": 3}


def test_labels_are_told_to_be_left_out(tmp_path: Path) -> None:
    file = PprofFile(CPU)
    file.sample([file.place(MAIN)], 3, more=chunk(3, number(1, 1)))
    assert "labels of samples are not shown" in opened(tmp_path, file).warnings


def test_numbers_in_fields_of_their_own_are_read_too(tmp_path: Path) -> None:
    file = PprofFile(("samples", "count"), CPU)
    outer, inner = file.place(MAIN), file.place(WORK)
    file.sample_unpacked([inner, outer], 1, 300)
    assert stacks_of(opened(tmp_path, file)) == {"main;work": 300}


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_it_is_known_by_its_content(pack: type[bytes], tmp_path: Path) -> None:
    file = PprofFile(CPU)
    file.sample([file.place(MAIN)], 3)
    path = tmp_path / "profile"
    path.write_bytes(pack(number(9, 1 << 60) + file.data()))
    assert detect_format(FileHead(path)).name == "pprof"


@pytest.mark.parametrize("text", [b"\n\nmain;work 3\n", b"\n\t# notes\nmain;work 3\n"])
def test_a_text_that_begins_with_empty_lines_is_none(text: bytes, tmp_path: Path) -> None:
    (path := tmp_path / "stacks.txt").write_bytes(text)
    assert detect_format(FileHead(path)).name == "folded stacks"


def _damaged() -> dict[str, tuple[bytes, str]]:
    whole = PprofFile(CPU)
    place = whole.place(MAIN)
    whole.sample([place], 3)
    negative, deep, bomb = PprofFile(CPU), PprofFile(CPU), PprofFile(CPU)
    negative.sample([negative.place(MAIN)], -3)
    deep.sample([deep.place(MAIN)] * 10_001, 3)
    many = bomb.place(*[MAIN] * 9_000)
    for _ in range(2_000):
        bomb.sample([many], 1)
    large = PprofFile(CPU)
    for _ in range(3):
        large.sample([large.place(MAIN)], 1 << 61)
    data = whole.data()
    types = chunk(1, number(1, 1))
    return {
        "cut off": (data[:-2], "cut off"),
        "no samples": (types, "no samples"),
        "values are missing": (data + types, "a sample without 2 values"),
        "unknown text": (types + chunk(2, varint(0x12) + b"\x01\x03"), "names string 1 of 0"),
        "a group": (data + b"\x0b", "damaged at byte"),
        "a number without an end": (data + b"\x48" + b"\xff" * 20, "damaged, or cut off"),
        "a run that ends in a number": (
            data + chunk(2, b"\x12\x02\x80\x80"),
            "a number is cut off",
        ),
        "negative": (negative.data(), "some values are negative"),
        "deep": (deep.data(), "more than 10,000 frames"),
        "inlined without end": (bomb.data(), "more frames than a file of its size"),
        "beyond 64 bits": (large.data(), "more than 64 bits hold"),
    }


DAMAGED = _damaged()


@pytest.mark.parametrize("case", DAMAGED)
def test_what_cannot_be_read_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    data, says = DAMAGED[case]
    assert says in refusal(tmp_path, data)


@pytest.mark.parametrize("field", [3, 4, 5])
def test_ids_that_hash_alike_as_numbers_do_not_in_its_tables(field: int) -> None:
    ids = [each * ((1 << 61) - 1) for each in range(-4, 5)]
    assert len(set(map(hash, ids))) == 1
    data = b"".join(chunk(field, number(1, each)) for each in ids)
    profile = decode_profile(data, lambda done: None)
    tables = {3: [*profile.mappings], 4: [*profile.locations], 5: [*profile.functions]}
    assert len(set(map(hash, tables[field]))) == len(ids)


def test_what_packs_well_may_not_expand_to_more_frames_than_its_size_allows(tmp_path: Path) -> None:
    bomb = PprofFile(CPU)
    many = bomb.place(*[MAIN] * 1_000)
    bomb.parts.append(chunk(6, bytes(100_000)))
    for _ in range(1_500):
        bomb.sample([many], 1)
    assert "more frames than a file of its size" in refusal(tmp_path, gzip.compress(bomb.data()))


def test_it_is_refused_where_there_is_too_little_memory_for_its_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLAME_MEMORY", "100kB")
    file = PprofFile(CPU)
    many = file.place(*[MAIN] * 100)
    for _ in range(100):
        file.sample([many], 1)
    assert refusal(tmp_path, file.data()).startswith("needs about 600 kB of memory")


@given(st.lists(st.lists(st.integers(0, (1 << 64) - 1), max_size=4), min_size=1, max_size=9))
def test_runs_of_numbers_are_decoded_as_they_were_written(messages: list[list[int]]) -> None:
    runs = NumberRuns()
    for numbers in messages:
        runs.add([varint(each) for each in numbers])
    values, counts = runs.build()
    assert counts.tolist() == list(map(len, messages))
    assert values.view(np.uint64).tolist() == [each for one in messages for each in one]


def test_what_flame_has_exported_is_the_same_tree(tmp_path: Path) -> None:
    path = tmp_path / "sample.pb.gz"
    words = [str(SAMPLES / "decode_small.sqlite"), "-f", "pprof", "-o", str(path)]
    assert main(["export", *words]) == 0
    profile = load(path)
    original = project(load(SAMPLES / "decode_small.sqlite"), Selection())
    again = project(profile, Selection())
    assert again.total.tolist()[0] == original.total.tolist()[0]
    kinds = [{tree.frames[int(frame)].kind for frame in tree.frame} for tree in (again, original)]
    assert kinds[0] == kinds[1]
