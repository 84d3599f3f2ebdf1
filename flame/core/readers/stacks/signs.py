"""Recognize speedscope files and Proton's, without what reads them."""

from __future__ import annotations

from flame.core.lazy_regex import lazy_regex

_OBJECT = lazy_regex(rb"(?:\xef\xbb\xbf)?\s*\{")
_SIGNS = (
    lazy_regex(rb'"\$schema"\s*:\s*"https?:\\?/\\?/www\.speedscope\.app\b'),
    lazy_regex(rb'"shared"\s*:\s*\{\s*"frames"\s*:\s*\['),
    lazy_regex(rb'"profiles"\s*:\s*\[\s*\{[^{}]*"type"\s*:\s*"(?:sampled|evented)"'),
)
_TREE = lazy_regex(rb'(?:\xef\xbb\xbf)?\s*\[\s*\{\s*"(?:children|frame|metrics)"\s*:\s*[\[{]')


def is_speedscope(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is meant to be a speedscope file.

    Not every writer names the schema, and some do at the end.
    """
    return bool(_OBJECT.match(head)) and any(sign.search(head) for sign in _SIGNS)


def is_proton(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is a Hatchet tree.

    Keys are sorted: of a deep tree, the beginning holds nothing but ``children``.
    """
    return _TREE.match(head) is not None
