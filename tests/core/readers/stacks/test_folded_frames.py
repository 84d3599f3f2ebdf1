"""Frames numbered by their text: as a dictionary would, whatever their keys are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.model.frames import FrameBuilder
from flame.core.options import LoadOptions, silent
from flame.core.readers.shared.frame_text import parse_frame
from flame.core.readers.stacks import folded
from flame.core.readers.stacks.folded_frames import ExactKeys, FoldedFrames, SameKeyError

SPELLED = (
    *("main", "a.b<int>", "~x", "$y", "_start", "x-1", "all", "[empty]", "", " ", "hip", "cu"),
    *("hipLaunch", "cuLaunchKernel", "cudaFree", "P12", "P12x", "T0x7f", "T7:8", "P", "T", "x_[k]"),
    *(
        "f (a.py:3)",
        "a.py(3): f",
        "a.py:f:3",
        "a.py:f@3",
        "py::f:a.py",
        "g (libc.so.6)",
        "stream 7",
    ),
    *("GPU 0", "rank 1", "process 1:x", "thread (1)", "memcpy HtoD", "CUDA graph", "+0x0120 LDG"),
    *(
        "py::f:a.py",
        "nn.Module: x",
        "<built-in x>",
        "é",
        "日本",
        "<string>:f:3",
        "[no launch recorded]",
    ),
)
TEXTS = (
    st.sampled_from(SPELLED) | st.text("PTcuhip_0aZ.:@()[] <+x", max_size=8) | st.text(max_size=4)
)
BATCHES = st.lists(st.lists(TEXTS.map(str.encode), max_size=12), max_size=4)


@given(BATCHES, st.booleans())
def test_frames_are_numbered_as_one_by_one(batches: list[list[bytes]], exact: bool) -> None:
    plain = FrameBuilder()
    frames = FoldedFrames(ExactKeys().__getitem__) if exact else FoldedFrames()
    for texts in batches:
        expected = [plain.add(parse_frame(text.decode())) for text in texts]
        assert frames.ids(texts).tolist() == expected
    for text in {text for texts in batches for text in texts}:
        assert frames.find(text) == plain.add(parse_frame(text.decode()))
    assert frames.find(b"nowhere else") == -1
    assert list(frames.build().build().frames) == list(plain.build().frames)


def test_texts_with_the_same_key_are_noticed() -> None:
    with pytest.raises(SameKeyError):
        FoldedFrames(len).ids([b"a", b"bb", b"c"])
    later = FoldedFrames(len)
    later.ids([b"a", b"bb"])
    later.ids([b"bb", b"ccc", b"a"])
    with pytest.raises(SameKeyError):
        later.ids([b"b"])


def test_a_file_whose_frames_have_the_same_key_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "stacks.folded"
    path.write_bytes(b"a;b 1\nc;d 2\na;d 3\n")
    monkeypatch.setattr(folded, "FoldedFrames", lambda key=len: FoldedFrames(key))
    raw = folded.read_folded(path, LoadOptions(), silent)
    frames, stacks = raw.frames.build(), raw.stacks.build()
    spelled = [
        "".join(frames[frame].name for frame in stacks.path(row)) for row in raw.stack.tolist()
    ]
    values = dict(zip(spelled, raw.measures[0].values.tolist(), strict=True))
    assert values == {"ab": 1, "cd": 2, "ad": 3}
