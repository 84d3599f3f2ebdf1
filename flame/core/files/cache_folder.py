"""Find the folder of the cache, and refuse one that another user could have prepared."""

from __future__ import annotations

import os
from pathlib import Path

from flame.core.errors import InputError
from flame.core.files.private import why_parent_untrusted, why_untrusted
from flame.core.files.publish import make_private_folder
from flame.core.files.user_folders import user_folder


class NoCacheError(InputError):
    """Report that there is no folder to cache results in, or none to be trusted."""


def cache_path() -> Path:
    """Name the folder of the cache: ``flame`` in XDG_CACHE_HOME, if that is absolute.

    Raises NoCacheError where nobody's home folder is known.
    """
    path = user_folder("XDG_CACHE_HOME", "~/.cache")
    if not path.is_absolute():
        raise NoCacheError("no cache: the home folder is not known")
    return path


def trusted_folder(kind: str = "") -> Path:
    """Return the folder of the cache, or that for a ``kind`` of results in it; made if need be.

    Raises NoCacheError where that fails, or where others than this user could change what is in it.
    """
    path = cache_path()
    try:
        make_private_folder(path.parent)
        _check_parent(path.parent)
        for folder in dict.fromkeys((path, path / kind)):
            folder.mkdir(mode=0o700, exist_ok=True)
            _check(folder)
    except OSError as error:
        raise NoCacheError(f"no cache at {path}: {error.strerror or error}") from None
    return path / kind


def refuse_untrusted() -> None:
    """Raise NoCacheError where the cache, as far as it is there already, is not to be trusted."""
    path = cache_path()
    try:
        if path.parent.exists():
            _check_parent(path.parent)
        if os.path.lexists(path):
            _check(path)
    except OSError as error:
        raise NoCacheError(f"no cache at {path}: {error.strerror or error}") from None


def _check(folder: Path) -> None:
    if reason := why_untrusted(folder):
        raise NoCacheError(f"no cache: {reason}")


def _check_parent(parent: Path) -> None:
    """Refuse a folder whose owner, or anybody, could put another in the place of the cache."""
    if reason := why_parent_untrusted(parent):
        raise NoCacheError(f"no cache: {reason}")
