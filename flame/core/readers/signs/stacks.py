"""Recognize speedscope files, Proton's and pprof's, without what reads them."""

from __future__ import annotations

from flame.core.lazy_regex import lazy_regex

_OBJECT = lazy_regex(rb"(?:\xef\xbb\xbf)?\s*\{")
_SIGNS = (
    lazy_regex(rb'"\$schema"\s*:\s*"https?:\\?/\\?/www\.speedscope\.app\b'),
    lazy_regex(rb'"shared"\s*:\s*\{\s*"frames"\s*:\s*\['),
    lazy_regex(rb'"profiles"\s*:\s*\[\s*\{[^{}]*"type"\s*:\s*"(?:sampled|evented)"'),
)
_SAMPLE_TYPE = lazy_regex(
    rb"(?:[\x48\x50\x60\x70][\x80-\xff]{0,9}+[\x00-\x7f])*+\n(?:\x02\x08[\x01-\x7f]|\x04\x08[\x01-\x7f]\x10[\x01-\x7f]"
    rb"|[\x05-\x06]\x08[\x80-\xff]?[\x01-\x7f]\x10[\x80-\xff]?[\x01-\x7f])[\x0a\x12\x1a\x22\x2a\x32HP`p]"
)
_TREE = lazy_regex(rb'(?:\xef\xbb\xbf)?\s*\[\s*\{\s*"(?:children|frame|metrics)"\s*:\s*[\[{]')


def is_speedscope(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is meant to be a speedscope file.

    Not every writer names the schema, and some do at the end.
    """
    return bool(_OBJECT.match(head)) and any(sign.search(head) for sign in _SIGNS)


def is_pprof(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is a pprof profile.

    Before kinds of samples, field 1 with the numbers of one or two strings, stand times at most.
    """
    return _SAMPLE_TYPE.match(head) is not None


def is_proton(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is a Hatchet tree.

    Keys are sorted: of a deep tree, the beginning holds nothing but ``children``.
    """
    return _TREE.match(head) is not None
