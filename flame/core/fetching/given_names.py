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

_UNKNOWN = "…"
"""Shown of a URL of which anything may be secret."""

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
    if scheme in ("http", "https"):
        _refuse_bad_port(url)
    return scheme


def shown_url(url: str) -> str:
    """Return ``url`` as it may be shown: without a password, and without what may sign it.

    All up to the last ``@`` may be a password, whose ``/``, ``?`` and ``#`` are not encoded. Where
    that stands behind ``?`` or ``#``, nothing tells such a password from a signature.
    """
    start, separator, rest = url.partition("://")
    shown = re.split(r"[?#]", rest, maxsplit=1)[0]
    place = shown.partition("/")[0]
    if ":" in place or "@" in place:
        hidden = rest[len(shown) :]
        shown = _UNKNOWN if "@" in hidden else shown.rpartition("@")[2]
    return f"{start}{separator}{shown}"


def _refuse_bad_port(url: str) -> None:
    """Raise UsageError where no port is one: what libraries say of that may hold a password."""
    from urllib.parse import urlsplit

    try:
        urlsplit(url).port  # noqa: B018 (what is no number is found here)
    except ValueError:
        encoded = "in a password write / as %2F, ? as %3F, # as %23, @ as %40"
        raise UsageError(f"{shown_url(url)}: is no URL with a host and a port: {encoded}") from None


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
