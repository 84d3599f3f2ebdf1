"""Tell what paths traces are given by that name no file here, and what these are called."""

from __future__ import annotations

import re

from flame.core.errors import UsageError
from flame.core.lazy_regex import lazy_regex

PACKAGES = {
    "https": ("fsspec", "aiohttp"),
    "http": ("fsspec", "aiohttp"),
    "s3": ("fsspec", "s3fs"),
    "gs": ("fsspec", "gcsfs"),
}
"""What fetches by each scheme, as the packages are called."""

_URL = lazy_regex(r"([A-Za-z][A-Za-z0-9+.-]*(?:::[A-Za-z][A-Za-z0-9+.-]*)*)://")
_LONGEST_NAME = 100

_WILDCARDS = frozenset("*?[")

NAMES_OF_STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


def is_url(text: str) -> bool:
    """Tell whether ``text`` names something elsewhere, by whichever scheme."""
    return _URL.match(text) is not None


def is_pattern(path: str) -> bool:
    """Tell whether ``path`` is a pattern of names, such as ``*.sqlite``, unless a file has it."""
    return not _WILDCARDS.isdisjoint(path)


def scheme_of(url: str) -> str:
    """Return the scheme of ``url``; UsageError where flame fetches nothing by it."""
    match = _URL.match(url)
    scheme = match[1].lower() if match else ""
    if scheme not in PACKAGES:
        known = ", ".join(f"{each}://" for each in PACKAGES)
        raise UsageError(f"{shown_url(url)}: flame fetches by {known} and nothing else")
    if not shown_url(url).partition("://")[2].strip("/"):
        raise UsageError(f"{shown_url(url)}: names no file")
    return scheme


def shown_url(url: str) -> str:
    """Return ``url`` as it may be shown: without a password, and without what may sign it."""
    start, separator, rest = url.partition("://")
    place, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    return f"{start}{separator}{place.rpartition('@')[2]}{slash}{path}"


def shown_name(given: str) -> str:
    """Return the name of a trace that was ``given``, as it may be shown."""
    if given in NAMES_OF_STDIN:
        return "standard input"
    return shown_url(given) if is_url(given) else given


def name_in(url: str) -> str:
    """Return what the file at ``url`` is called: the last part of its path."""
    from urllib.parse import unquote, urlsplit

    path = urlsplit(url).path.rstrip("/")
    name = unquote(path.rpartition("/")[2]).replace("/", "_").replace("\0", "_")
    name = name.encode("utf-8", "replace")[-_LONGEST_NAME:].decode("utf-8", "ignore")
    return "trace" if name in ("", ".", "..") else name
