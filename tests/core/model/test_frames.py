"""Frames are interned: equal in all they are, one id."""

from __future__ import annotations

from flame.core.model.frames import MAX_EXAMPLES, Frame, FrameBuilder, Kind


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
