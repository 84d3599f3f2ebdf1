"""Keep the paths of the traces that the app has shown, the last ones first."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from flame.core.files.atomic import private_output
from flame.core.files.user_folders import user_folder
from flame.core.loading.source_labels import absolute_path
from flame.core.mapped_files import open_regular

MOST = 50
"""Views that are kept; those shown before are forgotten."""

_MOST_TRACES = 256
"""Traces of a view that is kept."""
_LARGEST = 16 << 20

View = tuple[Path, ...]
"""The traces that were shown together, by their absolute paths."""


def recent_path() -> Path:
    """Return ``flame/recent.json`` in the user's state folder (XDG)."""
    return user_folder("XDG_STATE_HOME", "~/.local/state") / "recent.json"


def read_recent() -> list[View]:
    """List the traces shown last, the last ones first; nothing where that cannot be read."""
    with suppress(OSError):
        return _read()
    return []


def _read() -> list[View]:
    """List them; nothing where they make no sense. Raises OSError where they cannot be read."""
    with os.fdopen(open_regular(recent_path()), "rb") as file:
        content = file.read(_LARGEST)
    with suppress(ValueError, RecursionError, msgspec.ValidationError):
        views = msgspec.convert(json.loads(content), list[list[str]])
        return [tuple(map(Path, view)) for view in views if view][:MOST]
    return []


def remember(paths: Sequence[Path]) -> None:
    """Put ``paths``, shown together, before all others. Raises OSError.

    Nothing but their absolute paths is kept, for this user alone.
    """
    view = tuple(map(absolute_path, paths))
    if not view or len(view) > _MOST_TRACES:
        return
    known = list[View]()
    with suppress(FileNotFoundError):  # what cannot be read now, may be read again
        known = _read()
    others = [other for other in known if other != view]
    texts = [list(map(str, one)) for one in (view, *others)][:MOST]
    with private_output(recent_path()) as file:
        # Not msgspec's own JSON: paths may hold lone surrogates.
        file.write(f"{json.dumps(texts)}\n".encode("ascii"))
