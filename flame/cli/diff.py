"""Run ``flame diff``: show what has changed from one trace to another."""

from __future__ import annotations

import argparse
from pathlib import Path

from flame.cli.arguments import TRACES
from flame.cli.reopening import add_no_cache
from flame.core.errors import UsageError
from flame.core.starting import prepare_process
from flame.options.selection import (
    add_selection,
    load_options_of,
    said_by,
    selection_of,
    with_framework,
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add("paths", metavar="PATH", nargs="*", help=f"BASE and NEW: {TRACES}")
    text = "what values are divided by: step, second, activity, share or total, or how many units "
    text += "BASE and NEW had: 1000,1200 (default: step where both have steps, else total)"
    add("--per", metavar="BASIS", default="", help=text)
    text = "how wide frames are in the app: both (the wider of both, default), new or base"
    add("--widths", choices=("both", "new", "base"), default="both", metavar="SIDE", help=text)
    text = "colour frames by the change of their total (default) or own time"
    add(
        "--colour-by",
        dest="colour",
        choices=("total", "own"),
        default="total",
        metavar="BY",
        help=text,
    )
    add("--all-changes", action="store_true", help="colour small changes, too")
    text = "whose timeline the app shows: new (default) or base"
    add("--timeline", choices=("new", "base"), default="new", metavar="SIDE", help=text)
    text = "begin at a place that C has copied: JSON, or a file"
    add("--state", metavar="JSON|FILE", help=text)
    add_no_cache(parser)
    add_selection(parser, in_app=True)
    text = "keep the layers of a model apart, which are compared as one"
    add("--no-fold-layers", dest="fold_layers", action="store_false", help=text)
    parser.set_defaults(run=run, fold_layers=True)


def run(args: argparse.Namespace) -> int:
    """Compare the traces of ``args`` in the app."""
    from dataclasses import replace

    from flame.cli.app_start import started
    from flame.core.compare.basis import parse_per
    from flame.core.loading.inputs import Inputs
    from flame.options.config import read_config
    from flame.options.state import decode
    from flame.tui.diff.app import run_diff_app
    from flame.tui.diff.loading import RunInputs, SideInputs
    from flame.tui.diff.selection import diff_selection

    prepare_process()
    if len(args.paths) != 2:
        raise UsageError("name two traces: flame diff BASE NEW (see flame diff --help)")
    config = read_config()
    if args.no_cache:
        config = replace(config, cache=False)
    per = parse_per(args.per) if args.per else ""
    state = decode(args.state) if args.state else None
    selection = with_framework(selection_of(args, config.kernel_names), config.framework)
    drawn = (args.widths, args.colour, args.all_changes, args.timeline)
    chosen = diff_selection(selection, per, *drawn)
    sides = SideInputs(*([RunInputs(Inputs((Path(path),)))] for path in args.paths))
    words = [f"./{path}" if path.startswith("-") else path for path in args.paths]
    with started(config, said_by(args)) as start:
        return run_diff_app(sides, load_options_of(args), chosen, words, state, config, start)
