"""Match kernel names from another tool, often spelled differently, with a trace's kernels."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import Frame
from flame.core.names.cuda import demangle, kernel_base

_INTEGER = r"(?:(?:un)?signed )?(?:bool|char|short|int|long long|long)"
_CAST = lazy_regex(rf"\({_INTEGER}(?: int)?\)(?=-?[0-9])")
_SUFFIX = lazy_regex(r"(?<![\w.])(-?[0-9]+)(?:ull|ul|u|ll|l)\b", re.IGNORECASE)
_TRUTH = lazy_regex(r"(?<=[<,])(?:true|false)(?=[,>])")
_RETURNS = lazy_regex(r"\Avoid\s+")
_SPACE = lazy_regex(r"\s+")


@dataclass(frozen=True)
class KernelNames:
    """All known names of one kernel; empty where a name is not known."""

    mangled: str
    full: str
    base: str

    @classmethod
    def from_frame(cls, frame: Frame) -> KernelNames:
        """Return the names of a trace's kernel."""
        mangled, full = frame.get("mangled"), frame.get("demangled")
        return cls(mangled, full or (frame.name if _is_full(frame.name) else ""), frame.name)

    @classmethod
    def from_text(cls, name: str) -> KernelNames:
        """Return the names that follow from ``name``, whichever it is."""
        full = demangle(name)
        mangled = name if full != name else ""
        return cls(mangled, full if _is_full(full) else "", kernel_base(full))

    @property
    def signature(self) -> str:
        """The full name, however a tool spells it: white space, casts and truth values alike."""
        return _normalize_spelling(self.full)

    @property
    def function(self) -> str:
        """The signature without parameters, whose types not every demangler resolves."""
        return strip_parameters(self.signature)


def _is_full(name: str) -> bool:
    """Return whether ``name`` has more than a function's base name has."""
    return any(mark in name for mark in ("(", "<", "::"))


def _normalize_spelling(full: str) -> str:
    text = _SUFFIX.sub(r"\1", _CAST.sub("", _RETURNS.sub("", full.strip())))
    text = _SPACE.sub("", text.replace("<unnamed>", "(anonymous namespace)"))
    return _TRUTH.sub(lambda found: "1" if found[0] == "true" else "0", text)


def strip_parameters(signature: str) -> str:
    """Cut ``signature`` off at its last parenthesis outside of all other brackets."""
    if not signature.endswith(")"):
        return signature
    depth = 0
    for at in range(len(signature) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(signature[at], 0)
        if depth == 0:
            return signature[:at]
    return signature


@dataclass(frozen=True)
class KernelMatch:
    """Ids of the frames that a name means; ``unsure`` are those of kernels that it may mean."""

    frames: tuple[int, ...] = ()
    unsure: tuple[int, ...] = ()


_Key = Callable[[KernelNames], str]

_KEYS: tuple[_Key, ...] = (
    lambda names: names.mangled,
    lambda names: _SPACE.sub("", names.full),
    lambda names: names.signature,
    lambda names: names.function,
)
"""The surest first. Of what only a later one fits there must not be several kernels."""


class KernelIndex:
    """Finds the kernels of a trace by any of their names."""

    def __init__(self, frames: Mapping[int, Frame]) -> None:
        self._names = {index: KernelNames.from_frame(frame) for index, frame in frames.items()}
        self._by_key = [self._index(key, self._names) for key in _KEYS]
        self._by_base = self._index(lambda names: names.base, self._names)
        bare = {at: names for at, names in self._names.items() if not (names.full or names.mangled)}
        self._bare = self._index(lambda names: names.base, bare)

    def _index(self, key: _Key, names: Mapping[int, KernelNames]) -> dict[str, list[int]]:
        indices: dict[str, list[int]] = defaultdict(list)
        for index, kernel_names in names.items():
            if text := key(kernel_names):
                indices[text].append(index)
        return indices

    def match(self, name: str) -> KernelMatch:
        """Find the kernels called ``name``, be it mangled, demangled or a base name.

        A base name decides only where one side has no more than that. Demangled names that fit
        nothing may be a matter of spelling (lambdas, constants): what has their base is unsure.
        """
        names = KernelNames.from_text(name)
        for key, known in zip(_KEYS, self._by_key, strict=True):
            if (text := key(names)) and (indices := known.get(text)):
                return self._match_if_one(indices)
        if not names.full:
            return self._match_if_one(self._by_base.get(names.base, []))
        bare = self._match_if_one(self._bare.get(names.base, []))
        if bare.frames or names.mangled:
            return bare
        return KernelMatch(unsure=tuple(self._by_base.get(names.base, [])))

    def _match_if_one(self, indices: Iterable[int]) -> KernelMatch:
        """Match several frames if they are one kernel: equal mangled names, else full ones.

        The same full name with several mangled ones is of several kernels.
        """
        frames = tuple(indices)
        symbols = {self._names[at].mangled for at in frames}
        signatures = {self._names[at].signature for at in frames}
        same_name = len(signatures) < 2 and len(symbols - {""}) < 2
        is_one = same_name or (len(symbols) == 1 and "" not in symbols)
        return KernelMatch(frames) if is_one else KernelMatch(unsure=frames)
