"""Make names safe for a terminal, measure them in cells, and cut them to fit."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from rich.cells import cell_len, get_character_cell_size

from flame.core.lazy_regex import lazy_regex

ELLIPSIS = "…"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
LONGEST = 4096
"""Characters of a name that are ever looked at: half from each end, more than any screen shows."""

_MARKS_KEPT = 2
_MIDDLE_FROM = 16
# Joiners, variation selectors and skin tones change how wide neighbours are drawn, differently per
# terminal.
_SILENT = frozenset("\u200b\u200c\u200d\u2060\ufeff\u00ad")
_SILENT_RANGES = ((0xFE00, 0xFE0F), (0x1F3FB, 0x1F3FF), (0xE0100, 0xE01EF))
_NAMESPACE = lazy_regex(r"(?:(?:[A-Za-z_]\w*|\(anonymous namespace\)|<unnamed>)::)+(?=\w)")
_TOLD = lazy_regex(r"([\w…]+)(<[^()]*>)")
_SPACE = lazy_regex(r"\s+")
_PUNCTUATION = lazy_regex(r"[\s,;:<>()./_]+")
_LEAST_BASE = 5
_MIDDLE_OF_BASE = 12
_AMOUNT = lazy_regex(r"(?<![\w.])[0-9][0-9.,]* (?:[kMGTP]?B|[nµm]?s|min|h|%)(?!\w)")
_PATH = lazy_regex(r"[\w\-+*@$\[\]]*(?:(?:::|:?[./])[\w\-+*@$\[\]]+)+")
# What is the same for all names of a sort, around what tells them apart; none of it backtracks.
_WRAPPED = lazy_regex(
    r"nn\.Module: (?P<module>.+)"
    r"|autograd::engine::evaluate_function: (?P<backward>.+)"
    r"|<built-in (?:function|method) (?P<builtin>[^\s>]+)[^>]*>"
    r"|Optimizer\.step#(?P<optimizer>.+)"
    r"|## (?P<annotated>[^#]+) ##",
    re.DOTALL,
)


def printable(name: str) -> str:
    """``name`` with nothing in it that a terminal would obey, reorder or draw without width.

    Control characters become their pictures (``␛``), bidirectional and other format characters,
    surrogates and unassigned code points ``�``; joiners are dropped, and of many combining marks
    in a row the first two are kept. The result is one line.
    """
    name = shorten(name)
    return name if name.isascii() and name.isprintable() else _printable(name)


def safe_cells(text: str) -> str:
    """``text``, of whatever widget, in as many cells without anything that a terminal would obey.

    What takes no cell makes room for its picture at the end.
    """
    if text.isprintable():
        return text
    width = cell_len(text)
    safe = take("".join(map(_safe, text)), width)
    return fill(safe, width)


def shorten(name: str) -> str:
    """``name`` without its middle if it is longer than any screen."""
    if len(name) <= LONGEST:
        return name
    return name[: LONGEST // 2] + ELLIPSIS + name[-LONGEST // 2 :]


@lru_cache(8192)
def _printable(name: str) -> str:
    safe: list[str] = []
    marks = 0
    for char in filter(None, map(_safe, name)):
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        if marks <= _MARKS_KEPT:
            safe.append(char)
    return "".join(safe)


def _safe(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    if char in _SILENT or any(low <= code <= high for low, high in _SILENT_RANGES):
        return ""
    if char.isprintable():
        return char
    return " " if unicodedata.category(char) == "Zs" else REPLACEMENT


def width_of(text: str) -> int:
    """Cells that ``text`` (printable) takes."""
    return len(text) if text.isascii() else cell_len(text)


def take(text: str, width: int) -> str:
    """Return the longest beginning of ``text`` that fits ``width`` cells."""
    if text.isascii():
        return text[: max(width, 0)]
    used = 0
    for place, char in enumerate(text):
        used += get_character_cell_size(char)
        if used > width:
            return text[:place]
    return text


def take_last(text: str, width: int) -> str:
    """Return the longest end of ``text`` that fits ``width`` cells."""
    if text.isascii():
        return text[max(len(text) - width, 0) :]
    start, used = len(text), 0
    for place in range(len(text) - 1, -1, -1):
        used += get_character_cell_size(text[place])
        if used > width:
            break
        start = place
    # A combining mark whose base did not fit would join whatever stands before it.
    while start and start < len(text) and not get_character_cell_size(text[start]):
        start += 1
    return text[start:]


def is_path(name: str) -> bool:
    """Tell whether ``name`` is a module, scope or file path, whose end says most."""
    return _PATH.fullmatch(name) is not None


def unwrap(name: str) -> str:
    """``name`` without what PyTorch puts around it: ``Linear_3`` of ``nn.Module: Linear_3``."""
    wrapped = _WRAPPED.fullmatch(name)
    return wrapped[wrapped.lastgroup or 0] if wrapped else name


def cut(name: str, width: int) -> str:
    """``name`` made printable, in at most ``width`` cells, keeping its informative part.

    What PyTorch puts around a name goes first (``nn.Module: Linear_3``), and of the signature of a
    kernel ``void``, namespaces, and its end, where the parameters are. Paths keep their end
    (``…layers.18.mlp``), names with arguments these (``vecto…<silu>``), others their beginning and,
    where there is room, the end that tells siblings apart.
    """
    name = shorten(name)
    text = printable(name)
    if width_of(text) > width:
        name = unwrap(name)
        text = printable(name)
    if width_of(text) <= width:
        return text
    if width < 2:
        return take(text, width)
    if name.startswith("void ") and "<" in name:
        return cut_start(printable(_without_scope(name)), width)
    if is_path(name):
        return ELLIPSIS + take_last(text, width - 1)
    if width < _MIDDLE_FROM:
        return take(text, width - 1) + ELLIPSIS
    if told := _TOLD.fullmatch(text):
        return _cut_arguments(told[1], told[2], width)
    tail = (width - 1) // 3
    return take(text, width - 1 - tail) + ELLIPSIS + take_last(text, tail)


def _without_scope(signature: str) -> str:
    """The name of a kernel and its template arguments, and behind them what else there is."""
    return _NAMESPACE.sub("", signature.removeprefix("void "))


def _cut_arguments(base: str, arguments: str, width: int) -> str:
    """A name with arguments, which tell more than its own."""
    arguments = f"<{cut(arguments[1:-1], width - _LEAST_BASE - 3)}>"
    room = width - width_of(arguments)
    tail = room // 3 if room >= _MIDDLE_OF_BASE else 0
    if width_of(base) > room:
        base = take(base, room - 1 - tail) + ELLIPSIS + take_last(base, tail)
    return base + arguments


def cut_start(text: str, width: int) -> str:
    """Return the beginning of printable ``text`` in at most ``width`` cells."""
    if width_of(text) <= width:
        return text
    return take(text, width - 1) + ELLIPSIS if width > 1 else take(text, width)


def fill(text: str, width: int) -> str:
    """``text`` (printable, not wider) with spaces up to ``width`` cells."""
    return text + " " * (width - width_of(text))


def wrap(name: str, width: int, lines: int, *, prose: bool = False) -> list[str]:
    """``name`` made printable, on at most ``lines`` lines of ``width`` cells; cut if longer.

    Lines of ``prose`` end between words, where that costs no more than half of the line; all others
    after punctuation, where that costs no more than a quarter; none between a number and its unit.
    """
    text = printable(name)
    wrapped: list[str] = []
    while text and len(wrapped) < lines - 1 and width_of(text) > width > 0:
        piece = _piece(text, width, prose)
        wrapped.append(piece.rstrip())
        text = text[len(piece) :].lstrip()
    if text:
        wrapped.append(cut(text, width))
    return wrapped


def _piece(text: str, width: int, prose: bool) -> str:
    piece = take(text, width) or text[:1]
    end = _end_of_line(piece, text, prose)
    torn = (one for one in _AMOUNT.finditer(text) if one.start() < end < one.end())
    return piece[: next((one.start() for one in torn), 0) or end]


def _end_of_line(piece: str, text: str, prose: bool) -> int:
    """Where a line ends that ``piece``, which ``text`` begins with, would fill."""
    if text[len(piece) : len(piece) + 1] == " ":
        return len(piece)
    for pattern, least in ((_SPACE, 0.5),) * prose + ((_PUNCTUATION, 0.75),):
        ends = [match.end() for match in pattern.finditer(piece)]
        if ends and ends[-1] >= least * len(piece):
            return ends[-1]
    return len(piece)
