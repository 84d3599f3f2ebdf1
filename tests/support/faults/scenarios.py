"""What is run with failing calls: each a function that returns an exit code."""

from __future__ import annotations

import sys
from pathlib import Path

from flame.cli.main import main
from flame.core.errors import FlameError
from flame.core.model.pc_samples import Code
from flame.core.options import LoadOptions


def flame(*words: str) -> int:
    """Run the command line."""
    return main(list(words))


def said(error: Exception) -> int:
    """Print an error as the app shows it: a line."""
    code = error.exit_code if isinstance(error, FlameError) else 3
    print(f"flame: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
    return code


def save_dump(source: str, target: str) -> int:
    """Save a recording from the live view."""
    from flame.core.live.decode.growing import GrowingDump
    from flame.core.readers.fdump.chunks import DumpBytes
    from flame.core.readers.fdump.context import SharedTables
    from flame.exporters.dumps import copy_dumps

    path = Path(source)
    dump = GrowingDump(DumpBytes(path), source, 0, SharedTables(), LoadOptions())
    try:
        copy_dumps([dump], target, lambda copied: None)
    except FlameError as error:
        return said(error)
    finally:
        dump.close()
    return 0


def save_picture(target: str, replace: str) -> int:
    """Write a picture of the screen."""
    from flame.tui.dialogs.write_files import write_picture

    try:
        write_picture("<svg>" + "x" * 100_000 + "</svg>", target, replace=bool(replace))
    except FlameError as error:
        return said(error)
    return 0


def save_state() -> int:
    """Keep the place in the app for ``--state``."""
    from flame.options.state import AppState, save

    try:
        save(AppState(path="new"))
    except (FlameError, OSError) as error:
        return said(error)
    return 0


def remember_search() -> int:
    """Add to the history of searches."""
    from flame.tui.widgets.search_box import SearchHistory, searches_path

    SearchHistory(searches_path()).add("new")
    return 0


def cache_code(cubin: str) -> int:
    """Keep the text of a kernel in the cache."""
    from flame.core.sass.cache import CodeCache

    with Path(cubin).open("rb") as file:
        cache = CodeCache(file, "13.5")
        with cache.lock(lambda: None):
            known = cache.read()
            try:
                cache.write(known | {"f": _code()})
            except FlameError as error:
                return said(error)
    return 0


def store_code(folder: str) -> int:
    """Write the text of a kernel beside its cubin."""
    from flame.core.files.publish import open_folder
    from flame.core.sass.code_files import write_codes

    try:
        with open_folder(Path(folder)) as opened:
            write_codes(opened, "0123456789abcdef.sass", "13.5", {"f": _code()})
    except OSError as error:
        return said(error)
    return 0


def _code() -> Code:
    import numpy as np

    offset, none = np.array([0, 16]), np.array([-1, -1], np.int32)
    return Code("f", offset, ("NOP", "EXIT"), none, none + 1, ())
