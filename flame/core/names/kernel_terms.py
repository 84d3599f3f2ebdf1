"""Take the name of a kernel apart: what it is called by, and the terms that tell it from others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

from flame.core.lazy_regex import lazy_regex
from flame.core.names.cuda import split_signature
from flame.core.names.kernel_words import (
    ABBREVIATED,
    GENERIC,
    PLUMBING,
    SILENT,
    SUFFIX,
    TELLING,
    TYPES,
    WRAPPERS,
)

_LONGEST = 16 * 1024
"""Characters of a name that are read; templates of CUTLASS have up to about 8,000."""

LONGEST_BASE = 60
"""Cells of a name without arguments: of a longer one the parts of it are terms, too."""

_TOKEN = lazy_regex(
    r"\((?:\w|::|<unnamed>|\s)+\)(?=-?\d)"  # `(int)128`: the cast is left out
    r"|(?P<word>(?:unsigned|signed) (?:long long|long|int|char|short)|long long|[A-Za-z_$][\w$]*)"
    r"|(?P<lambda>#\d+|\(instance \d+\))"
    r"|(?P<number>-?\d+)(?:[uUlL]+|\b)"
    r"|(?P<scope>::)"
    r"|(?P<bracket>[()\[\]])"
)
_ANONYMOUS = lazy_regex(r"\(anonymous namespace\)|<unnamed>")
_FLAGS = {"0": "false", "1": "true"}
_FLAG_CAST = lazy_regex(r"\(bool\)[01]\b")
_MANGLED = lazy_regex(
    r"Lb(?P<flag>[01])E|(?:L[a-z]|E)(?P<number>n?\d+)E|DF(?P<float>\d+[b_]?)|[ST][\dA-Z]*_"
    r"|(?P<length>[1-9]\d{0,2})"
)
_MOST_TERMS = 200
_PARTS = lazy_regex(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")


class Rank(IntEnum):
    """Order terms by how much they tell a reader; what comes first is told first."""

    TELLING = 0
    WRAPPER = 1
    TYPE = 2
    PLUMBING = 3
    PART = 4
    NUMBER = 5
    LAMBDA = 6
    SCOPE = 7
    REST = 8


class KernelTerm(NamedTuple):
    """Hold one word or number of a kernel's name."""

    rank: Rank
    text: str


class KernelTerms(NamedTuple):
    """Hold what a kernel is called by, and its terms by `Rank`, in the order of the name."""

    base: str
    terms: tuple[tuple[str, ...], ...]

    @property
    def telling(self) -> tuple[str, ...]:
        """The words that say what is computed."""
        return self.terms[Rank.TELLING]


@lru_cache(2048)
def terms_of(base: str, demangled: str) -> KernelTerms:
    """Take a kernel's name apart. ``demangled`` is empty where only its ``base`` name is known.

    Linear in the length of the name, of which the first 16,384 characters count. Never raises.
    """
    full = (demangled or base)[:_LONGEST]
    if full.startswith("_Z"):
        return _mangled_terms(full) or _named(base, [])
    signature = split_signature(full)
    if signature is None:
        return _named(base, [])
    arguments, parameters = _split_arguments(signature.rest)
    scope = KernelTerm(Rank.SCOPE, signature.scope)
    if arguments or "<" in signature.scope:
        return _named(base, [*_terms(arguments), *_terms(f"{signature.scope}::"), scope])
    # Overloads differ in their parameters alone.
    overload = (KernelTerm(max(term.rank, Rank.TYPE), term.text) for term in _terms(parameters))
    return _named(base, [*overload, scope])


def _named(base: str, terms: list[KernelTerm]) -> KernelTerms:
    """Call a function that runs its argument by that argument; take long names apart, too."""
    own = next((term for term in terms if term.rank <= Rank.WRAPPER), None)
    if own is not None and GENERIC.fullmatch(base):
        base = own.text
        terms.remove(own)
    for match in filter(None, (pattern.fullmatch(base) for pattern in ABBREVIATED)):
        *told, rest = match.groups()
        base = "_".join(told)
        terms += (KernelTerm(Rank.PART, part) for part in rest.split("_"))
    if len(base) > LONGEST_BASE:
        terms += (KernelTerm(Rank.PART, part) for part in _parts(base))
    return KernelTerms(base, _by_rank(terms))


def _parts(base: str) -> Iterator[str]:
    """Split a long name into its words: ``tilesize64x64_execute`` and ``PagedKvCausal``."""
    for part in base[:_LONGEST].split("_"):
        yield from _PARTS.findall(part) if len(part) > LONGEST_BASE // 3 else filter(None, [part])


def _by_rank(terms: list[KernelTerm]) -> tuple[tuple[str, ...], ...]:
    """Order terms; those of very many are told together, by a number, after all others."""
    if len(terms) > _MOST_TERMS:
        rest = crc32("\0".join(text for _, text in terms[_MOST_TERMS:]).encode("utf-8", "replace"))
        terms = [*terms[:_MOST_TERMS], KernelTerm(Rank.REST, f"{rest:08x}")]
    return tuple(tuple(text for rank, text in terms if rank == wanted) for wanted in Rank)


def _split_arguments(rest: str) -> tuple[str, str]:
    """Split what follows a name into template arguments and parameters."""
    if not rest.startswith("<"):
        return "", rest
    depth, at = 0, 0
    for match in re.finditer(r"->|operator ?(?:<<|>>|<=>|[<>]=?)|[<>]", rest):
        token = match[0]
        depth += (token == "<") - (token == ">")
        at = match.end()
        if not depth:
            break
    return rest[1 : at - 1], rest[at:]


def _terms(text: str) -> Iterator[KernelTerm]:
    """Find the terms in the arguments of a template."""
    text = _FLAG_CAST.sub(lambda match: _FLAGS[match[0][-1]], _ANONYMOUS.sub("", text))
    depth = 0
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        if kind == "bracket":
            depth = max(depth + (1 if token in "([" else -1), 0)
        elif kind == "lambda":
            yield KernelTerm(Rank.LAMBDA, token.strip("#()").removeprefix("instance "))
        elif kind == "number":
            yield KernelTerm(Rank.NUMBER, match["number"])
        elif kind == "word" and not text.startswith("::", match.end()) and token not in SILENT:
            yield _ranked(token, depth)


def _ranked(word: str, depth: int = 0) -> KernelTerm:
    """Rank ``word``; inside ``depth`` brackets stand the parameters of functions."""
    if word in ("true", "false"):
        return KernelTerm(Rank.NUMBER, word)
    if word in TYPES:
        return KernelTerm(Rank.TYPE, TYPES[word])
    if not TELLING.fullmatch(word) and (depth or PLUMBING.fullmatch(word)):
        return KernelTerm(Rank.PLUMBING, word)
    rank = Rank.WRAPPER if WRAPPERS.fullmatch(word) else Rank.TELLING
    return KernelTerm(rank, SUFFIX.sub("", word) or word)


def _mangled_terms(name: str) -> KernelTerms | None:
    """Read the words of a symbol that no demangler here knows (``DF16b`` is younger than most)."""
    words: list[KernelTerm] = []
    at = 2
    while match := _MANGLED.search(name, at):
        at = match.end()
        if match["length"]:
            word = name[at : at + int(match["length"])]
            at += len(word)
            words.append(_ranked(word))
        elif match["flag"]:
            words.append(KernelTerm(Rank.NUMBER, _FLAGS[match["flag"]]))
        elif match["number"]:
            words.append(KernelTerm(Rank.NUMBER, match["number"].replace("n", "-")))
        elif match["float"]:
            words.append(KernelTerm(Rank.TYPE, "bf16" if match["float"] == "16b" else "half"))
    first = next((place for place, (_, word) in enumerate(words) if GENERIC.fullmatch(word)), None)
    return None if first is None else _named(words[first].text, words[first + 1 :])
