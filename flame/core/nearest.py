"""Find what was meant by a word that is nearly one of those known."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, words: Iterable[str]) -> str:
    """Return the one of ``words`` that ``word`` nearly is; empty where it is nearly none.

    The dashes of options say nothing.
    """
    from difflib import get_close_matches

    by_name = {name.lstrip("-"): name for name in words}
    found = get_close_matches(word.lstrip("-"), by_name, 1, 0.6)
    return by_name[found[0]] if found else ""


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return the end of a complaint on ``word``: a question, or nothing."""
    found = nearest(word, words)
    return f"; did you mean {found}?" if found else ""
