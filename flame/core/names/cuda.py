"""Shorten the names of kernels, and split SASS instructions into their parts."""

from __future__ import annotations

import re
from functools import cache
from types import ModuleType
from typing import NamedTuple

from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex

# CUPTI's callback names end in the CUDA version that introduced the ABI: always four digits or
# more. A shorter `_v2` is part of the symbol (`cuMemAlloc_v2`) and NVIDIA's reports keep it.
_API_VERSION = lazy_regex(r"_v\d{4,}(?:_ptsz|_ptds)?\Z")


# Longer symbols are left as they are: demanglers recurse as deep as a symbol nests, and an old
# libstdc++ (before GCC 9) knows no limit but its thread's stack.
_DEMANGLE_CHARS = 16 * 1024

_OPERATOR = (
    r"(?<![\w$])operator(?![\w$])"
    r"(?: ?(?:\(\)|\[\]|->\*?|<=>|<<=|>>=|<<|>>|[<>=!+\-*/%^&|]=|&&|\|\||\+\+|--"
    r"|[<>=!+\-*/%^&|~,]))?"
    r"(?: (?=<))?"  # demanglers print `operator< <int>`
)
_TOKEN = lazy_regex(rf"{_OPERATOR}|->|::|[<>()\[\]{{}} ]")
_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}

_PARTS = lazy_regex(r"(\s*(?:@!?U?P(?:T|\d+)\s+)?)(\S*)(.*)", re.DOTALL)
_OFFSET = lazy_regex(r"\+0x[0-9a-f]+ (?=\S)")


def kernel_base(name: str) -> str:
    """Shorten a demangled kernel name to its base name, as Nsight Systems' short name.

    Return type, namespaces, template arguments, parameter list, `const`, ABI tags and
    `[clone …]` are dropped: `void at::native::reduce_kernel<512, 1>(float *)` → `reduce_kernel`.
    A name that is no C++ signature, or whose brackets do not pair, is returned unchanged. Never
    raises, nor returns a longer name, nor an empty name for one that is not; linear in the length.
    """
    signature = split_signature(name)
    return name if signature is None else signature.base


class Signature(NamedTuple):
    """Hold a demangled name in parts: what its function is a member of, its name, what follows.

    ``scope`` is the qualified name before the last ``::``; ``rest`` begins with the template
    arguments or the parameters. The return type is left out.
    """

    scope: str
    base: str
    rest: str


def split_signature(name: str) -> Signature | None:
    """Split a demangled name; None for what is no C++ signature, or where brackets do not pair."""
    signature = name.partition(" [clone ")[0]
    tokens = _outer_tokens(signature)
    if tokens is None:
        return None
    kinds = {token for token, _, _ in tokens}
    if " " in kinds and not kinds & {"<", "("}:
        return Signature("", signature, "")  # plain words
    part = _last_component(signature, tokens)
    base = signature[part.start : part.cut].lstrip("*&").rstrip()
    if not base or base.startswith("("):
        return None
    rest = "" if part.cut is None else signature[part.cut :]
    return Signature(signature[part.scope : part.start].removesuffix("::"), base, rest)


def _outer_tokens(name: str) -> list[tuple[str, int, int]] | None:
    """(text, start, end) of each token outside all brackets; None if brackets do not pair."""
    outer: list[tuple[str, int, int]] = []
    pending: list[str] = []
    for match in _TOKEN.finditer(name):
        token = match[0]
        if not pending:
            outer.append((token, match.start(), match.end()))
        if token in _CLOSING:
            pending.append(_CLOSING[token])
        elif token in (">", ")", "]", "}") and not _close(pending, token):
            return None
    return None if pending else outer


def _close(pending: list[str], bracket: str) -> bool:
    """Whether `bracket` may stand here; drops what it closes from `pending`, innermost last."""
    if bracket == ">" and pending and pending[-1] != ">":
        return True  # greater-than in a parenthesised template argument
    if bracket != ">":
        while pending and pending[-1] == ">":
            pending.pop()  # less-than in a parenthesised template argument
    return bool(pending) and pending.pop() == bracket


@dataclass
class _Component:
    """One part of a qualified name; `cut` is where its template arguments or parameters begin.

    `scope` is where the qualified name begins.
    """

    start: int
    scope: int
    is_conversion: bool = False
    cut: int | None = None
    has_parameters: bool = False

    def note_bracket(self, name: str, at: int) -> None:
        """Cut here, unless the bracket opens the part: `<unnamed>`, `[lambda() (instance 1)]`."""
        if at == self.start:
            return
        if self.cut is None and (name[at] in "<(" or name.startswith("[abi:", at)):
            self.cut = at
        self.has_parameters |= name[at] == "("


def _last_component(name: str, tokens: list[tuple[str, int, int]]) -> _Component:
    """The function's own name: the last component, or the one with parameters that it trails.

    A space parts the return type from the name, and the name from what follows it (`const`).
    """
    part = _Component(0, 0)
    function: _Component | None = None
    for token, start, end in tokens:
        if token.startswith("operator") and not name[part.start : start].strip("*&"):
            part = _Component(start, part.scope, is_conversion=token == "operator")
        elif part.is_conversion and token != "(":
            continue  # the target type, as in `operator unsigned long`
        elif token == "::":
            part, function = _Component(end, part.scope), None
        elif token == " ":
            function = part if part.has_parameters else function
            part = _Component(end, end)
        elif token in _CLOSING:
            part.note_bracket(name, start)
    if function is not None and not part.has_parameters:
        part = function
    return part


def demangle(mangled: str) -> str:
    """Demangle an Itanium-mangled symbol to its C++ name; unchanged where that is not possible.

    The GNU runtime gives up on symbols of more than about 1,000 characters: unchanged as well.
    """
    if not mangled.startswith("_Z") or len(mangled) > _DEMANGLE_CHARS or "\0" in mangled:
        return mangled
    cxxfilt = _cxxfilt()
    if cxxfilt is None:
        return mangled
    try:
        name: str = cxxfilt.demangle(mangled)
    except (cxxfilt.Error, UnicodeError):
        return mangled
    return name


@cache
def _cxxfilt() -> ModuleType | None:
    """The wrapper of the C++ runtime's demangler; None on a machine without one."""
    try:
        import cxxfilt
    except (ImportError, OSError):
        return None
    module: ModuleType = cxxfilt
    return module


class InstructionParts(NamedTuple):
    """Hold a SASS instruction in three parts, which together are its text; each may be empty."""

    predicate: str
    opcode: str
    operands: str


def split_instruction(text: str) -> InstructionParts:
    """Split an instruction: ``@!P0 EXIT`` has a predicate, ``LDG.E R2, [R4]`` operands."""
    match = _PARTS.fullmatch(text)
    assert match is not None  # every part may be empty
    return InstructionParts(*match.groups())


def strip_offset(name: str) -> str:
    """Return the instruction that a frame is called by: ``+0x0120 EXIT`` is ``EXIT``."""
    return _OFFSET.sub("", name, count=1) if name.startswith("+") else name


def api_name(text: str) -> str:
    """Strip the ABI version from a CUDA API name: `cudaLaunchKernel_v7000` → `cudaLaunchKernel`."""
    return _API_VERSION.sub("", text)
