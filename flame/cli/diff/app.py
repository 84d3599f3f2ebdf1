"""Show two sides in the app, for ``flame diff``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from flame.cli.diff.sides import InputSides, side_filters
from flame.options.selection import load_options_of, said_by, selection_of, with_framework

if TYPE_CHECKING:
    from flame.core.compare.basis import Per
    from flame.core.compare.changes import Limits


def show_app(args: argparse.Namespace, sides: InputSides, per: Per, limits: Limits) -> int:
    """Show ``sides`` in the app until the user quits; return the exit code."""
    from dataclasses import replace

    from flame.cli.app_start import started
    from flame.options.config import read_config
    from flame.options.state import decode
    from flame.tui.diff.app import run_diff_app
    from flame.tui.diff.loading import RunInputs, SideInputs
    from flame.tui.diff.selection import diff_selection

    config = read_config()
    if args.no_cache:
        config = replace(config, cache=False)
    state = decode(args.state) if args.state else None
    selection = with_framework(selection_of(args, config.kernel_names), config.framework)
    chosen = diff_selection(
        selection,
        per,
        args.widths or "both",
        args.colour_by,
        args.all_changes,
        args.timeline,
        limits,
    )
    base, new = (
        [RunInputs(one, side_filters(args, name), getattr(args, f"{name}_select")) for one in side]
        for name, side in (("base", sides.base), ("new", sides.new))
    )
    with started(config, said_by(args)) as start:
        words = list(_words(args))
        options = load_options_of(args)
        both = SideInputs(base, new, args.iteration)
        return run_diff_app(both, options, chosen, words, state, config, start)


def _words(args: argparse.Namespace) -> Iterator[str]:
    """The words of the command line that name the sides."""
    given = getattr(args, "given", {})
    yield from (given.get(path) or _path_word(path) for path in args.paths)
    for name in ("base", "new"):
        for paths in getattr(args, name):
            yield f"--{name}"
            yield from (given.get(path) or _path_word(path) for path in paths)
        if text := getattr(args, f"{name}_select"):
            yield f"--{name}-select={text}"
    if args.iteration is not None:
        yield f"--iteration={args.iteration}"


def _path_word(path: str) -> str:
    return f"./{path}" if path.startswith("-") else path
