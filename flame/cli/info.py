"""Run ``flame info``: say what a trace holds and what it lacks."""

from __future__ import annotations

import argparse

from flame.cli.arguments import add_paths, inputs_of
from flame.cli.reopening import add_no_cache, profile_cache
from flame.cli.streams import WIDEST_TEXT, print_text, terminal_width
from flame.core.starting import prepare_process
from flame.options.config import allows_cache
from flame.options.selection import EFFICIENCY, add_ncu, add_work


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_paths(parser)
    add_work(parser.add_argument_group(EFFICIENCY))
    add_ncu(parser)
    add_no_cache(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what the traces of ``args`` hold."""
    prepare_process()
    from flame.console.info import as_json, as_text
    from flame.console.progress import load_with_progress
    from flame.core.options import LoadOptions

    inputs = inputs_of(args)
    with profile_cache(args) as cache:
        work = {name: getattr(args, name) for name in ("peak", "dtype", "model_flops")}
        options = LoadOptions(ncu=tuple(args.ncu), cache=allows_cache(args), **work)
        profile = load_with_progress(inputs, options, cache)
        width = min(terminal_width(WIDEST_TEXT), WIDEST_TEXT)
        print_text(as_json(profile, inputs) if args.json else as_text(profile, inputs, width))
    return 0
