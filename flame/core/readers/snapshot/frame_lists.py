"""Turn the lists of frames of a snapshot into stacks: Python frames, and C++ frames below them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from flame.core.columns import I4
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.stacks import StackBuilder
from flame.core.readers.shared.stack_rows import Tick, build_row_stacks
from flame.core.readers.snapshot.limits import ObjectAllowance

_UNKNOWN_FILES = ("", "??")
"""What C++ frames have for a file where that is not known; Python frames have one always."""

_NATIVE_SUFFIXES = (".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hpp", ".inc", ".o")

_PLUMBING_NAMES = (
    "unwind::unwind",
    "CapturedTraceback::gather",
    "gather_with_cpp",
    "_start",
    "__libc_start_main",
    "PyEval_",
    "PyObject_",
    "PyFunction_",
)
_PLUMBING_FILES = (
    "core/boxing",
    "/Register",
    "/Redispatch",
    "pythonrun.c",
    "Modules/main.c",
    "Objects/call.c",
    "Objects/methodobject.c",
    "pycore_ceval.h",
    "ceval.c",
    "cpython/abstract.h",
)
"""C++ frames of the interpreter, of the dispatcher and of recording itself: PyTorch's own viewer
(torch/cuda/_memory_viz.py) leaves out those with these parts in their names and files."""

_MOST_LINES = 1 << 31
_MOST_FRAMES = 1_000
"""Frames of a kind in a stack, the outermost; deeper than that only a recursion is."""


class _Frames(NamedTuple):
    """The frame ids of a list, outermost first."""

    python: list[int]
    native: list[int]


class FrameLists:
    """Numbers lists of frames by what is in them; each list object is looked at once.

    Lists must stay alive, and as they are, while they are numbered: they are known again by their
    identity, and those of the same frame objects by the identities of these. ``too_deep`` counts
    different lists of which the innermost frames are left out.
    """

    def __init__(self, frames: FrameBuilder, allowance: ObjectAllowance) -> None:
        self.too_deep = 0
        self._frames = frames
        self._allowance = allowance
        self._of_object: dict[int, int] = {}
        self._of_frames: dict[bytes, int] = {}
        self._of_frame: dict[tuple[str, str, int], int] = {}
        self._lists: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {((), ()): 0}

    def number(self, frames: object) -> int:
        """Number the list ``frames``, the innermost first; 0 is that of no frames."""
        if not isinstance(frames, list) or not frames:
            return 0
        number = self._of_object.get(id(frames))
        if number is None:
            self._allowance.take(len(frames))
            key = array("Q", [id(one) for one in frames]).tobytes()
            number = self._of_frames.get(key)
            if number is None:
                number = self._of_frames[key] = self._add_list(frames)
            self._of_object[id(frames)] = number
        return number

    def _add_list(self, frames: Sequence[Any]) -> int:
        found = self._read(frames)
        return self._lists.setdefault((tuple(found.python), tuple(found.native)), len(self._lists))

    def _read(self, frames: Sequence[Any]) -> _Frames:
        ids = [one for one in map(self._frame, frames) if one >= 0]
        kinds = [self._frames[one].kind for one in ids]
        python = [one for one, kind in zip(ids, kinds, strict=True) if kind == Kind.PYTHON]
        below = takewhile(lambda pair: pair[1] == Kind.NATIVE, zip(ids, kinds, strict=True))
        native = [one for one, _ in below]
        self.too_deep += max(len(python), len(native)) > _MOST_FRAMES
        return _Frames(python[::-1][:_MOST_FRAMES], native[::-1][:_MOST_FRAMES])

    def _frame(self, frame: object) -> int:
        """The id of a frame; -1 of what is none, or is left out."""
        if not isinstance(frame, dict):
            return -1
        name, file, line = frame.get("name"), frame.get("filename"), frame.get("line")
        if not (isinstance(name, str) and isinstance(file, str) and type(line) is int):
            return -1
        key = name, file, line
        number = self._of_frame.get(key)
        if number is None:
            number = self._of_frame[key] = self._add(name, file, line)
        return number

    def _add(self, name: str, file: str, line: int) -> int:
        if file in _UNKNOWN_FILES or file.endswith(_NATIVE_SUFFIXES):
            if _is_plumbing(name, file):
                return -1
            file = "" if file in _UNKNOWN_FILES else file
            kind = Kind.NATIVE
        else:
            kind = Kind.PYTHON
        return self._frames.add(Frame(kind, name, file, line if 0 < line < _MOST_LINES else 0))

    def build(self, tick: Tick) -> tuple[StackBuilder, I4, I4]:
        """Build the stacks, and the ids of those of Python and C++ frames by number, i4[lists]."""
        spelled = [python for python, _ in self._lists] + [native for _, native in self._lists]
        lengths = np.array([len(one) for one in spelled], np.int64)
        ids = np.array([frame for one in spelled for frame in one], np.int32)
        stacks, found = build_row_stacks(ids, lengths, tick)
        return stacks, found[: len(self._lists)], found[len(self._lists) :]


def _is_plumbing(name: str, file: str) -> bool:
    return any(part in name for part in _PLUMBING_NAMES) or any(
        part in file for part in _PLUMBING_FILES
    )
