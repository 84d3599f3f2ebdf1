"""Dumps that were cut off, damaged, or are still being written: what is whole is shown."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from tests.support.profiles.project_tree import project_tree
from tests.support.tiers import deep_except
from tests.support.writers.fdumpfile import API, DumpFile
from tests.support.writers.fdumpscripts import Step, recorded

SIZE = 1 << 16
SCRIPT: list[Step] = [
    ("push", 100, "step", 0),
    ("push", 100, "layer", 1),
    ("launch", 100, "gemm", 3, False, True),
    ("capture", 100, 2, 2),
    ("launch", 101, "softmax", 4, True, True),
    ("pop", 100, 0),
    ("copy", 100, 0, 1),
    ("replay", 101, 1),
    ("push", 101, "attn", 0),
]
# Offsets in the header of a chunk.
MAGIC, TYPE, CHUNK_SIZE, COMMITTED = 0, 4, 8, 16


def program(repeats: int = 4) -> DumpFile:
    return recorded(SCRIPT * repeats, DumpFile(rows=4))


def opened(data: bytes, folder: Path) -> Profile:
    """The profile of these bytes; everything that is worked out later is."""
    path = folder / "x.fdump"
    path.write_bytes(data)
    profile = load(path)
    tables = (profile.activities, profile.host)
    assert all(int(table.duration.min(initial=0)) >= 0 for table in tables)
    assert profile.ranges is not None
    assert profile.launches is not None
    assert len(profile.launches) == len(profile.activities)
    if len(profile.activities):
        tree = project_tree(profile)
        assert int(tree.total[0]) == int(tree.own.sum()) == profile.gpu_time
    return profile


def chunks_of(data: bytes) -> list[int]:
    return list(range(SIZE, len(data), SIZE))


def of_type(data: bytes, number: int) -> list[int]:
    return [at for at in chunks_of(data) if data[at + TYPE] == number]


def changed(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


def warned(profile: Profile, text: str) -> bool:
    return any(text in warning for warning in profile.warnings)


def test_cut_at_every_chunk_the_rest_is_shown(tmp_path: Path) -> None:
    data = program().data()
    shown = []
    for end in [*chunks_of(data), len(data)]:
        profile = opened(data[:end], tmp_path)
        assert warned(profile, "cut off") == (end < len(data))
        shown.append(len(profile.activities))
    assert shown == sorted(shown)
    assert shown[0] == 0 < shown[-1]


@pytest.mark.deep
def test_cut_anywhere_the_rest_is_shown(tmp_path: Path) -> None:
    data = program(2).data()
    whole = len(opened(data, tmp_path).activities)
    ends = random.Random(1).sample(range(SIZE, len(data)), 40)
    # Also within the records at the beginning of each chunk.
    ends += [at + more for at in chunks_of(data) for more in (1, 63, 64, 65, 100)]
    for end in ends:
        profile = opened(data[:end], tmp_path)
        assert len(profile.activities) <= whole
        assert warned(profile, "cut off")


@pytest.mark.parametrize("size", [1, 8, 79, 80, 4095, 4096, 5000])
def test_cut_within_the_header_nothing_is_left(tmp_path: Path, size: int) -> None:
    with pytest.raises(InputError) as caught:
        opened(program().data()[:size], tmp_path)
    assert str(caught.value).startswith(str(tmp_path))


@pytest.mark.parametrize("seed", deep_except([0], range(6)))
def test_whatever_bits_flip_it_opens_or_is_refused_in_a_line(tmp_path: Path, seed: int) -> None:
    data, choose = program(2).data(), random.Random(seed)
    places = [*range(80), *range(4096, 4096 + 3000)]
    places += [at + more for at in chunks_of(data) for more in range(64 + 4 * 96)]
    for _ in range(50):
        damaged = bytearray(data)
        for place in choose.choices(places, k=choose.choice([1, 1, 2, 5, 30])):
            damaged[place] ^= 1 << choose.randrange(8)
        try:
            opened(bytes(damaged), tmp_path)
        except InputError as error:
            assert "\n" not in str(error)


def test_a_chunk_that_is_none_hides_no_other(tmp_path: Path) -> None:
    data = program().data()
    whole = len(opened(data, tmp_path).activities)
    for at in of_type(data, 6):
        profile = opened(changed(data, at + MAGIC, b"XX"), tmp_path)
        assert whole - 4 <= len(profile.activities) < whole
        assert warned(profile, "1 piece of it cannot be read")


def test_a_hole_in_a_dump_that_has_ended_is_said(tmp_path: Path) -> None:
    data = program().data()
    at = of_type(data, 6)[0]
    assert warned(opened(changed(data, at, bytes(SIZE)), tmp_path), "1 piece of it cannot be read")


@pytest.mark.parametrize("value", [b"\xff\xff\xff\xff", b"\x00\x00\x01\x00"])
def test_a_count_beyond_the_chunk_adds_no_records(tmp_path: Path, value: bytes) -> None:
    data = program().data()
    whole = len(opened(data, tmp_path).activities)
    profile = opened(changed(data, of_type(data, 6)[0] + COMMITTED, value), tmp_path)
    assert len(profile.activities) == whole
    assert warned(profile, "cannot be read, or not wholly")


def test_what_names_a_lost_stack_says_so(tmp_path: Path) -> None:
    file = DumpFile()
    python = file.python(("f", "f.py", 1), ("g", "f.py", 2))
    file.kernel("a", 0, 5, 0, python=python + 1, nvtx=99, tid=100)
    file.node(77, file.frame(("h", "f.py", 3)), 0)
    profile = opened(file.data(), tmp_path)
    table = profile.activities
    for stack, names in ((table.python[0], ["[lost]", "h"]), (table.nvtx[0], ["[lost]"])):
        assert [profile.frames[f].name for f in table.stacks.path(int(stack))] == names
    assert warned(profile, "2 stacks are not whole")


def test_nodes_that_make_a_circle_or_a_well_are_no_stacks(tmp_path: Path) -> None:
    file = DumpFile()
    item = file.frame(("f", "f.py", 1))
    for number in range(1, 3001):
        file.record("node", id=number, parent=number - 1, item=item)
    file.record("node", id=4001, parent=4002, item=item)
    file.record("node", id=4002, parent=4001, item=item)
    file.record("node", id=4003, parent=4003, item=item)
    for node in (3000, 4001, 4003):
        file.kernel("a", 0, 5, 0, python=node, tid=100)
    profile = opened(file.data(), tmp_path)
    assert int(profile.activities.stacks.depth.max()) <= 500
    assert warned(profile, "stacks are not whole")


def test_of_two_things_with_one_id_none_is_believed(tmp_path: Path) -> None:
    file = DumpFile()
    for name in ("f", "g"):
        file.record("frame", id=1, function=file.text(name))
    for _ in range(2):
        file.record("frame", id=2, function=file.text("h"))
    for number, item in ((1, 1), (2, 2)):
        file.record("node", id=number, item=item)
        file.kernel("a", 0, 5, 0, python=number, tid=100)
    profile = opened(file.data(), tmp_path)
    frames = profile.activities.stacks.frame[profile.activities.python]
    assert [profile.frames[frame].name for frame in frames] == ["[lost]", "h"]


def test_times_that_make_no_sense_count_as_nothing(tmp_path: Path) -> None:
    file = DumpFile()
    file.kernel("a", 10, 20, 0)
    file.record("kernel", start=0, end=0)
    file.record("kernel", start=file.time(5), end=1 << 63)
    file.record("range", start=1 << 60, end=(1 << 60) + 5, tid=100)
    profile = opened(file.data(), tmp_path)
    assert (profile.gpu_time, len(profile.activities)) == (10, 3)
    assert warned(profile, "2 GPU activities were recorded without a start or an end")
    assert warned(profile, "1 NVTX range has no time that makes sense: left out")


def test_another_version_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a dump of version 2, this flame reads version 1"):
        opened(changed(program().data(), 8, b"\x02"), tmp_path)


def test_sizes_in_the_header_that_are_wrong_are_those_of_version_1(tmp_path: Path) -> None:
    data = program().data()
    whole = len(opened(data, tmp_path).activities)
    for at, value in ((12, b"\x00\x00\x02\x00"), (16, b"\x00\x00\x02\x00"), (16, bytes(4))):
        assert len(opened(changed(data, at, value), tmp_path).activities) == whole


def test_a_tail_that_is_too_early_hides_nothing(tmp_path: Path) -> None:
    data = program().data()
    whole = len(opened(data, tmp_path).activities)
    assert len(opened(changed(data, 40, SIZE.to_bytes(8, "little")), tmp_path).activities) == whole


def test_room_that_was_made_ahead_is_no_damage(tmp_path: Path) -> None:
    file = program()
    file.ended = False
    profile = opened(file.data() + bytes(20 * SIZE), tmp_path)
    assert not warned(profile, "damaged")
    assert warned(profile, "still being written, or ended without saying so")


def test_what_is_not_committed_is_not_there(tmp_path: Path) -> None:
    file = DumpFile()
    file.name(API, 307, "cuLaunchKernel")
    file.kernel("a", 0, 5, 0)
    file.kernel("b", 5, 7, 0)
    data = file.data()
    one = (96).to_bytes(4, "little")
    profile = opened(changed(data, of_type(data, 6)[0] + COMMITTED, one), tmp_path)
    assert profile.gpu_time == 5


def test_of_a_record_that_is_committed_in_part_nothing_is_shown_and_that_is_said(
    tmp_path: Path,
) -> None:
    file = DumpFile()
    file.kernel("a", 0, 5, 0)
    file.kernel("b", 5, 7, 0)
    data = file.data()
    part = (96 + 40).to_bytes(4, "little")
    profile = opened(changed(data, of_type(data, 6)[0] + COMMITTED, part), tmp_path)
    assert profile.gpu_time == 5
    assert warned(profile, "damaged: 1 piece of it cannot be read, or not wholly: left out")


def test_a_file_of_endless_nothing_is_soon_read(tmp_path: Path) -> None:
    path = program().write(tmp_path / "x.fdump")
    whole = len(load(path).activities)
    os.truncate(path, 1 << 42)
    assert len(load(path).activities) == whole
