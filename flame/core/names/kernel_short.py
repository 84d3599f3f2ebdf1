"""Call each of many kernels by a short name that tells what ran, and tells it from the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from zlib import crc32

from flame.core.names.kernel_terms import LONGEST_BASE, KernelTerms, Rank, terms_of
from flame.core.names.kernel_words import BASE_SUFFIX

_LONGEST = LONGEST_BASE
_LONGEST_ARGUMENTS = 34
_ELLIPSIS = "…"

Kernel = tuple[str, str]
"""The base name of a kernel, and its demangled name, empty where that is not known."""


def short_names(kernels: Iterable[Kernel]) -> dict[Kernel, str]:
    """Call every kernel by its base name and the first argument that tells what it computes.

    Those that would be called the same get the arguments in which they differ, the most telling
    first. Names have at most about 60 characters. They do not depend on the order of ``kernels``.
    """
    terms = {kernel: terms_of(*kernel) for kernel in kernels}
    texts = _texts(dict(_arguments(set(terms.values()))))
    return {kernel: texts[one] for kernel, one in terms.items()}


def _arguments(kernels: Collection[KernelTerms]) -> Iterator[tuple[KernelTerms, list[str]]]:
    """Choose the arguments that each kernel is told by."""
    alike: dict[tuple[str, ...], list[KernelTerms]] = defaultdict(list)
    for kernel in kernels:
        alike[_cut(kernel.base, _LONGEST), *kernel.telling[:1]].append(kernel)
    for (_, *told), group in alike.items():
        yield from _told_apart(group, told)


def _texts(told: dict[KernelTerms, list[str]]) -> dict[KernelTerms, str]:
    """Write the names; what is alike once cut to fit is told apart by more arguments."""
    named = {kernel.base for kernel in told if told[kernel]}
    alike: dict[str, list[KernelTerms]] = defaultdict(list)
    for kernel, arguments in told.items():
        alike[_text(kernel, arguments, named)].append(kernel)
    texts = {group[0]: text for text, group in alike.items() if len(group) == 1}
    again = [group for group in alike.values() if len(group) > 1]
    for kernel, arguments in chain.from_iterable(_told_apart(g, told[g[0]]) for g in again):
        texts[kernel] = _text(kernel, arguments, named)
    users = Counter(texts.values())
    return {one: _marked(text, one) if users[text] > 1 else text for one, text in texts.items()}


def _told_apart(
    group: list[KernelTerms], told: list[str]
) -> Iterator[tuple[KernelTerms, list[str]]]:
    """Add to ``told`` the terms by which the kernels of ``group`` differ, one after the other."""
    pending = [(group, told, 0, 0)]
    while pending:
        group, told, rank, place = pending.pop()
        while len(group) > 1 and rank < len(Rank):
            if place >= max(len(kernel.terms[rank]) for kernel in group):
                rank, place = rank + 1, 0
                continue
            parts = _split(group, rank, place)
            place += 1
            if len(parts) > 1:
                pending += ((part, [*told, *term], rank, place) for term, part in parts.items())
                break
        else:
            yield from ((kernel, told) for kernel in group)


def _split(
    group: list[KernelTerms], rank: int, place: int
) -> dict[tuple[str, ...], list[KernelTerms]]:
    """Sort kernels by the term at ``place`` among those of ``rank``; () is for none."""
    parts: dict[tuple[str, ...], list[KernelTerms]] = defaultdict(list)
    for kernel in group:
        parts[kernel.terms[rank][place : place + 1]].append(kernel)
    return parts


def _text(kernel: KernelTerms, told: list[str], named: Collection[str]) -> str:
    """Write a name; one without arguments ends in ``<>`` where others, ``named``, have some."""
    if not told and kernel.base not in named:
        return _cut(kernel.base, _LONGEST)
    arguments = f"<{', '.join(told)}>"
    base = BASE_SUFFIX.sub("", kernel.base) or kernel.base
    if len(base) + len(arguments) > _LONGEST:
        arguments = f"<{_cut(arguments[1:-1], _LONGEST_ARGUMENTS)}>"
    return _cut(base, max(_LONGEST - len(arguments), _LONGEST // 3)) + arguments


def _cut(text: str, most: int) -> str:
    """Cut out the middle of a long text; its beginning tells more than its end."""
    if len(text) <= most:
        return text
    tail = most // 3
    return text[: most - tail - 1] + _ELLIPSIS + text[len(text) - tail :]


def _marked(text: str, kernel: KernelTerms) -> str:
    """Tell what was cut to the same ``text`` apart by a number, the same in every run."""
    return f"{text}~{crc32(repr(kernel).encode('utf-8', 'surrogatepass')):08x}"
