"""What is run with failing calls: each a function that returns an exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

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


def remember_settings() -> int:
    """Keep what the app remembers between starts."""
    from flame.options.config import DEFAULTS
    from flame.options.preferences import open_memory

    memory = open_memory(DEFAULTS)
    memory.remember(theme="flame-light")
    memory.settle()
    return 0


def remember_trace(path: str) -> int:
    """Add to the list of traces that were shown."""
    from flame.options.recent import remember

    try:
        remember([Path(path)])
    except OSError as error:
        return said(error)
    return 0


def write_ranks(target: str) -> int:
    """Write a summary of ranks, and beside it what there is of it before."""
    from flame.core.ranks.inputs import RankInputs
    from flame.engines.output import SummaryOutput
    from tests.support.ranks.random_ranks import random_summary

    summary = random_summary(1, 1, 4)
    try:
        output = SummaryOutput(target, RankInputs((), (), (), ()), force=False)
        output.keep(summary)
        output.write(summary)
    except FlameError as error:
        return said(error)
    return 0


def write_rank_beside(dump: str) -> int:
    """Write the summary of a rank beside its dump, as at the end of a recording."""
    from flame.core.options import silent
    from flame.record.rank_summaries import _write_summary

    try:
        _write_summary(Path(dump), LoadOptions(), silent, memory=None)
    except FlameError as error:
        return said(error)
    return 0


def keep_profile(trace: str) -> int:
    """Keep what has been read of a trace in the cache, of any size."""
    from flame.core.loading.file import load_file
    from flame.core.options import silent
    from flame.core.reopening.profile_cache import ProfileCache

    cache = ProfileCache(least=0, settled=0)
    cache.load(Path(trace), LoadOptions(), load_file, silent)
    cache.write()
    return 0


def fetch_trace() -> int:
    """Fetch a trace into the cache, or else into the current folder."""
    from flame.core.fetching import remote
    from flame.core.options import silent

    def get(target: str, callback: Any) -> None:
        Path(target).write_bytes(b"main;work 12\n")
        callback.relative_update(13)

    download = remote._Download(get, "https://host/a.folded", 13, silent)
    try:
        remote._fetch_to_cache("https://host/a.folded", "1", download, silent)
    except FlameError as error:
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
