"""Work with parameters of SGR: what they set, and how to come from some to others."""

from __future__ import annotations

from functools import lru_cache

from flame.core.lazy_regex import lazy_regex

_CODE = lazy_regex(r"([34]8);(?:5;\d+|2;\d+;\d+;\d+)|\d+")
_FOREGROUND, _BACKGROUND = "foreground", "background"
_SEEN_ON_BLANKS = ("4", "7", "9", "21", "51", "52", "53")
"""Underlined (once, twice), reversed, struck out, framed, encircled, overlined."""
_OFF = {
    _FOREGROUND: "39",
    _BACKGROUND: "49",
    "1": "22",
    "2": "22",
    "3": "23",
    "4": "24",
    "5": "25",
    "7": "27",
    "8": "28",
    "9": "29",
}
"""What takes away one thing that is set (ECMA-48, 8.3.117)."""

Codes = dict[str, str]
"""Parameters by what they set: foreground, background, or an attribute each."""


@lru_cache(4096)
def codes_of(style: str) -> Codes:
    """Return the codes of ``style``, which is complete from a reset on; not to be changed."""
    return {_subject(code[0]): code[0] for code in _CODE.finditer(style)}


def _subject(code: str) -> str:
    """What a code of SGR sets (ECMA-48, 8.3.117, and the bright colours of aixterm)."""
    number = int(code.split(";", 1)[0])
    if 30 <= number <= 39 or 90 <= number <= 97:
        return _FOREGROUND
    return _BACKGROUND if 40 <= number <= 49 or 100 <= number <= 107 else code


@lru_cache(4096)
def style_of_blanks(style: str) -> str:
    """Return what is seen of ``style`` where there is no character: mostly the background."""
    return style if shows_on_blanks(style) else codes_of(style).get(_BACKGROUND, "")


@lru_cache(4096)
def shows_on_blanks(style: str) -> bool:
    """Tell whether a blank in ``style`` is more than its background."""
    return any(code in codes_of(style) for code in _SEEN_ON_BLANKS)


@lru_cache(4096)
def with_background_of(style: str, blanks: str) -> str:
    """Return ``style``, as far as it can stay, with the background of ``blanks``."""
    if shows_on_blanks(style):
        return blanks
    kept = {what: code for what, code in codes_of(style).items() if what != _BACKGROUND}
    return ";".join([*kept.values(), *codes_of(blanks).values()])


@lru_cache(4096)
def style_change(before: str, after: str) -> str:
    """Return the parameters of SGR that make ``after`` of ``before``, both complete from 0 on.

    Empty where both are the same.
    """
    old, new = codes_of(before), codes_of(after)
    if old == new:
        return ""
    anew = f"0;{after}" if after else "0"
    gone = [what for what in old if what not in new]
    if not all(what in _OFF for what in gone):
        return anew
    off = dict.fromkeys(_OFF[what] for what in gone)
    # 22 takes away both bold and dim.
    on = [code for what, code in new.items() if old.get(what) != code or _OFF.get(what) in off]
    return min(anew, ";".join([*off, *on]), key=len)
