"""Run ``flame diff``: compare two runs, before and after."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from flame.cli.diff.options import declare_options
from flame.cli.diff.output import (
    keep,
    tell_decision,
    write,
)
from flame.cli.diff.sides import InputSides, load_sides, sides_of
from flame.cli.outputs import check_output, chosen_sections, write_output
from flame.cli.reopening import profile_cache
from flame.cli.streams import is_on_terminal
from flame.core.errors import UsageError
from flame.core.starting import delay_collection, prepare_process
from flame.options.selection import selection_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flame.core.compare.basis import Per
    from flame.core.compare.changes import Limits


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    declare_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare the two sides of ``args``."""
    prepare_process()
    from flame.core.compare.sections.diff_report import SECTIONS

    names = chosen_sections(args.section, SECTIONS)
    if names is None:
        return 0
    if args.top < 1:
        raise UsageError(f"--top {args.top}: is no number of rows")
    if args.keep_base is not None:
        return keep(args)
    if args.format == "folded" and args.widths == "both":
        raise UsageError("--widths both: a file has one side after the other, new or base")
    from flame.core.compare.basis import parse_per
    from flame.core.compare.changes import parse_limits

    sides = sides_of(args)
    per = "" if args.per is None else parse_per(args.per)
    limits = parse_limits(args.min_change)
    if _shows_app(args):
        from flame.cli.diff.app import show_app

        return show_app(args, sides, per, limits)
    return _print(args, sides, names, per, limits)


def _shows_app(args: argparse.Namespace) -> bool:
    """Whether nothing is to be written, and a person is there."""
    wants_text = args.print or args.json or args.md or args.format or args.section
    wants_text = wants_text or args.output is not None or args.fail_on is not None
    return not wants_text and is_on_terminal()


def _print(
    args: argparse.Namespace, sides: InputSides, names: Sequence[str], per: Per, limits: Limits
) -> int:
    from flame.core.compare.comparison import compare
    from flame.core.compare.gate.decide import as_facts, decide, parse_noise
    from flame.core.compare.gate.terms import read_condition

    selection = selection_of(args)
    condition = None if args.fail_on is None else read_condition(args.fail_on)
    noise = parse_noise(args.run_noise)
    check_output(args.output, sides.every, args.force)
    args.paths = [str(path) for one in sides.every for path in one.paths]
    with profile_cache(args, selection) as cache:
        loaded = load_sides(args, sides, cache)
        delay_collection()  # sections make few objects and no garbage in circles
        comparison = compare(loaded, selection, per, limits)
        decision = None if condition is None else decide(comparison, condition, noise)
        facts = None if decision is None else as_facts(args.fail_on, comparison, decision)
        text = partial(write, args, sides, comparison, names, facts)
        write_output(args.output, text, args.force)
    return 0 if decision is None else tell_decision(args, decision, facts)
