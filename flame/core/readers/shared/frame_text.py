"""Parse frames that profilers have written as text, each in its own way."""

from __future__ import annotations

import re
from collections.abc import Callable

from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import NO_LAUNCH, Frame, Kind
from flame.core.names.rename import NN_MODULE

NO_NAME = "[empty]"
"""The name of a frame without one, as our own exports write it."""

_PYTHON_FILE = (".py", ".pyx", ".pyi", ".pyw", ".ipynb")
_NATIVE_FILE = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".inl", ".cu", ".cuh", ".rs", ".S")
_LIBRARY = lazy_regex(r"\.(?:so(?:\.[0-9]+)*|dylib|dll|exe|pyd)\Z")

# Each is tried where the text begins or ends with what none of the others has; no two parts of an
# expression can match the same character, so that a name of 100 kB costs what it is long.
_PLACE = lazy_regex(r"(?P<file>[^()]*?)(?::(?P<line>[0-9]{1,9}))?\)\Z")
_KINETO = lazy_regex(r"\((?P<line>[0-9]{1,9})\): ")
_AUSTIN = lazy_regex(r":(?P<name>[^:]+):(?P<line>[0-9]{1,9})\Z")
_PROTON = lazy_regex(r":(?P<name>[^:@]+)@(?P<line>[0-9]{1,9})\Z")
_PROTON_LINE_FIRST = lazy_regex(r":(?P<line>[0-9]{1,9})@(?P<name>[^@]+)\Z")
_PROCESS = lazy_regex(r"process [0-9]+:|process \[[0-9]+\]\Z|P[0-9]+\Z")
_THREAD = lazy_regex(
    r"thread (?:\(|[0-9]+\Z|0[xX][0-9a-fA-F]+\Z|\[[0-9]+\]\Z)"
    r"|T(?:0x[0-9a-fA-F]+|[0-9]+:[0-9]+)\Z"
)
_GROUPS = (
    (Kind.PROCESS, _PROCESS),
    (Kind.THREAD, _THREAD),
    (Kind.RANK, lazy_regex(r"rank [0-9]+\Z")),
    (Kind.DEVICE, lazy_regex(r"GPU [0-9]+(?: |\Z)")),
    (Kind.STREAM, lazy_regex(r"stream [0-9]+\Z")),
    (Kind.LAUNCH, lazy_regex(r"(?:cuda|cu|hip)[A-Z][A-Za-z0-9]*(?:_v[0-9]+|_ptsz)*\Z")),
    (Kind.MEMCPY, lazy_regex(r"(?i:memcpy) [HDPA]to[HDPA](?: \(|\Z)")),
    (Kind.GRAPH, lazy_regex(r"CUDA graph(?: [0-9]+)?\Z")),
)
_INSTRUCTION = lazy_regex(r"\+0x[0-9a-f]{4,16} ")
_BUILTIN = ("<built-in ", "<method '", NN_MODULE)


def parse_frame(text: str) -> Frame:
    """Return the frame that a profiler wrote as ``text``; `Kind.FRAME` with all of it if unknown.

    | written by | text | frame |
    |---|---|---|
    | py-spy | ``func (pkg/file.py:12)`` | PYTHON ``func``, file, line |
    | py-spy, native | ``func (src/x.cpp:12)``, ``func (libc.so.6)`` | NATIVE ``func``, file, line |
    | py-spy | ``process 12:"cmd"``, ``thread (0x7F): "Main"`` | PROCESS, THREAD |
    | PyTorch | ``pkg/file.py(12): func``, ``<built-in …>`` | PYTHON |
    | austin | ``pkg/file.py:func:12``, ``P12``, ``T0x7f`` | PYTHON, PROCESS, THREAD |
    | Triton Proton | ``pkg/file.py:func@12`` | PYTHON |
    | CPython's perf map | ``py::func:pkg/file.py`` | PYTHON |
    | perf, async-profiler | ``func_[k]`` | NATIVE, the suffix kept: code of the kernel |
    | flame | ``GPU 0 …``, ``stream 7``, ``+0x0120 LDG…``, … | as it was |

    Frames without a text are called `NO_NAME`. Linear in the length; does not remember texts: call
    it once for each.
    """
    if not text.strip():
        return Frame(Kind.FRAME, NO_NAME)
    if is_instruction(text):
        return Frame(Kind.SASS, text)
    return _parse_with_place(text) or Frame(_kind_of_name(text), text)


def is_instruction(text: str) -> bool:
    """Return whether flame has written ``text`` for an instruction: ``+0x0120 LDG.E R2, [R4]``."""
    return bool(_INSTRUCTION.match(text))


def _kind_of_name(text: str) -> Kind:
    """Return the kind of a frame whose text is a name and nothing else."""
    if text.startswith(_BUILTIN):
        return Kind.PYTHON
    if text.endswith("_[k]"):
        return Kind.NATIVE
    if text == NO_LAUNCH:
        return Kind.LAUNCH
    return next((kind for kind, pattern in _GROUPS if pattern.match(text)), Kind.FRAME)


def _parse_with_place(text: str) -> Frame | None:
    """Parse a text that says in which file the frame is; None for other texts."""
    return next(filter(None, (reading(text) for reading in _PARSERS)), None)


def _parse_brackets(text: str) -> Frame | None:
    """Parse ``func (file:12)``, ``func (file)``, ``func (library)``."""
    name, _, place = text.rpartition(" (")
    match = _PLACE.match(place) if name and text.endswith(")") else None
    if not match:
        return None
    file, line = match["file"], int(match["line"] or 0)
    if _is_python(file) if line else file.endswith(_PYTHON_FILE):
        return Frame(Kind.PYTHON, name, file, line)
    if line and file.endswith(_NATIVE_FILE):
        return Frame(Kind.NATIVE, name, file, line)
    return Frame(Kind.NATIVE, name, extra=(("module", file),)) if _LIBRARY.search(file) else None


def _parse_kineto(text: str) -> Frame | None:
    """Parse ``file(12): func``."""
    match = _KINETO.search(text)
    if not match or not _is_python(file := text[: match.start()]):
        return None
    name = text[match.end() :]
    return Frame(Kind.PYTHON, name, file, int(match["line"])) if name else None


def _parser_of_ending(pattern: re.Pattern[str]) -> Callable[[str], Frame | None]:
    """Return a parser of a file's name followed by what ``pattern`` matches."""

    def reading(text: str) -> Frame | None:
        match = pattern.search(text)
        if not match or not _is_python(file := text[: match.start()]):
            return None
        return Frame(Kind.PYTHON, match["name"], file, int(match["line"]))

    return reading


def _parse_perf_map(text: str) -> Frame | None:
    """Parse ``py::func:file``, as CPython tells perf of its functions."""
    name, _, file = text.removeprefix("py::").partition(":")
    marked = text.startswith("py::") and name and file
    return Frame(Kind.PYTHON, name, file) if marked else None


def _is_python(file: str) -> bool:
    """Return whether ``file`` is Python source, or code without a file, such as ``<string>``."""
    return file.endswith(_PYTHON_FILE) or (file.startswith("<") and file.endswith(">"))


_PARSERS = (
    _parse_perf_map,
    _parse_brackets,
    _parse_kineto,
    _parser_of_ending(_AUSTIN),
    _parser_of_ending(_PROTON),
    _parser_of_ending(_PROTON_LINE_FIRST),
)
