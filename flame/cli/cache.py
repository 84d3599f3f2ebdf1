"""Run ``flame cache``: show what is kept to be quicker the next time, or remove it."""

from __future__ import annotations

import argparse

from flame.cli.streams import print_text, terminal_width
from flame.core.errors import InputError, UsageError

_PRINTED_WIDTH = 120
_CLEAR = "clear"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    text = "remove all of it; the traces themselves stay"
    parser.add_argument("action", metavar=_CLEAR, nargs="?", choices=[_CLEAR], help=text)
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Show the cache, or clear it."""
    if args.action == _CLEAR:
        return _clear(args)
    from flame.console.cache_list import as_json, as_text
    from flame.core.files.bounds import cache_entries, read_bounds
    from flame.core.files.cache_folder import refuse_untrusted

    refuse_untrusted()
    entries, bounds = cache_entries(), read_bounds()
    width = terminal_width(_PRINTED_WIDTH)
    print_text(as_json(entries, bounds) if args.json else as_text(entries, bounds, width))
    return 0


def _clear(args: argparse.Namespace) -> int:
    from flame.console.cache_list import cleared
    from flame.core.files.bounds import clear_cache
    from flame.core.files.cache_folder import cache_path

    if args.json:
        raise UsageError("--json shows the cache: flame cache clear prints no JSON")
    try:
        entries = clear_cache()
    except OSError as error:
        raise InputError(f"{cache_path()}: {error.strerror or error}") from None
    print_text(cleared(entries, cache_path()))
    return 0
