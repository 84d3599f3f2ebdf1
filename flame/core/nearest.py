"""Find what was meant by a word that is nearly one of those known."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the one of ``known`` that ``word`` is nearly; empty where it is nearly none."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), 1, 0.6)), "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a complaint on ``word``: a question, or nothing."""
    found = nearest(word, known)
    return f"; did you mean {found}?" if found else ""
