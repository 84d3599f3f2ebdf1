"""Frames are interned: equal in all they are, one id."""

from __future__ import annotations

import numpy as np
import pytest

from flame.core.model.frames import MAX_EXAMPLES, Frame, FrameBuilder, Kind, PackedFrames


def test_frame_zero_is_the_root() -> None:
    table = FrameBuilder().build()
    assert table.frames == (Frame(Kind.ROOT, "all"),)


def test_equal_frames_share_an_id() -> None:
    frames = FrameBuilder()
    assert frames.add(Frame(Kind.KERNEL, "gemm")) == frames.add(Frame(Kind.KERNEL, "gemm"))
    assert len(frames) == 2


def test_frames_that_differ_in_anything_stay_apart() -> None:
    frames = FrameBuilder()
    different = [
        Frame(Kind.NVTX, "step"),
        Frame(Kind.PYTHON, "step"),
        Frame(Kind.PYTHON, "step", "train.py"),
        Frame(Kind.PYTHON, "step", "train.py", 7),
        Frame(Kind.NVTX, "step", extra=(("domain", "NCCL"),)),
    ]
    ids = [frames.add(frame) for frame in different]
    assert ids == [1, 2, 3, 4, 5]
    assert [frames.build()[index] for index in ids] == different


def test_an_extra_is_found_by_its_key() -> None:
    frame = Frame(Kind.NVTX, "step", extra=(("domain", "NCCL"), ("shapes", "[2]")))
    assert frame.get("shapes") == "[2]"
    assert frame.get("category") == ""


def test_the_table_knows_every_kind() -> None:
    frames = FrameBuilder()
    frames.add(Frame(Kind.MEMSET, "memset"))
    assert frames.build().kind.tolist() == [Kind.ROOT, Kind.MEMSET]


def test_a_few_different_examples_are_kept() -> None:
    frames = FrameBuilder()
    index = frames.add(Frame(Kind.NVTX, "all_reduce"))
    for number in range(MAX_EXAMPLES + 2):
        for _ in range(2):
            frames.add_example(index, f"size {number}")
    kept = tuple(f"size {number}" for number in range(MAX_EXAMPLES))
    assert frames.build().examples == {index: kept}


def test_kinds_stand_in_stack_order() -> None:
    order = [kind.title for kind in sorted((Kind.KERNEL, Kind.NVTX, Kind.LAUNCH, Kind.PYTHON))]
    assert order == ["python", "launch", "nvtx", "kernel"]


def packed() -> PackedFrames:
    """The root, ``a``, a Python function, and ``bé``."""
    others = {0: Frame(Kind.ROOT, "all"), 2: Frame(Kind.PYTHON, "f", "a.py", 3)}
    return PackedFrames("abé".encode(), np.array([0, 0, 0, 1]), np.array([0, 1, 0, 4]), others)


FRAMES = [
    Frame(Kind.ROOT, "all"),
    Frame(Kind.FRAME, "a"),
    Frame(Kind.PYTHON, "f", "a.py", 3),
    Frame(Kind.FRAME, "bé"),
]


def test_packed_frames_are_made_when_they_are_asked_for() -> None:
    frames = packed()
    assert list(frames) == FRAMES
    assert list(frames[1:3]) == FRAMES[1:3]
    assert frames[-1] == FRAMES[-1]
    assert frames.kind.tolist() == [frame.kind for frame in FRAMES]
    assert frames.is_packed.tolist() == [False, True, False, True]
    with pytest.raises(IndexError):
        frames[4]


def test_more_frames_come_behind_packed_ones() -> None:
    builder = FrameBuilder(packed())
    assert [builder.add(frame) for frame in FRAMES] == [0, 1, 2, 3]
    described = Frame(Kind.NVTX, "a", extra=(("shapes", "[1]"),))
    assert builder.add(described) == builder.add(described) == 4
    assert builder.add(Frame(Kind.FRAME, "ab")) == 5
    assert builder[3] == FRAMES[3] and builder[4] == described
    assert list(builder.described(0)) == [4]
    table = builder.build()
    assert [table[index] for index in range(len(table))] == [*FRAMES, described, builder[5]]
    again = FrameBuilder.from_table(table)
    assert again.add(described) == 4 and again.add(Frame(Kind.FRAME, "bé")) == 3
