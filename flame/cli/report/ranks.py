"""Report on the ranks of a summary: ``flame report run.flamesum``, ``flame ranks run.flamesum``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from flame.cli.arguments import inputs_of
from flame.cli.outputs import chosen_sections
from flame.cli.report.output import check_target, hand_over
from flame.core.errors import UsageError
from flame.options.selection import add_selection, load_options_of, selection_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flame.core.projection.selection import Selection
    from flame.core.rank_summary.summary import RankSummary

_OF_ACTIVITIES = ("fail_on", "by", "iteration", "iterations", "dtype")
"""Options of the report that a summary, which has no activities, cannot follow."""


_HEAD = 64
"""Bytes at the beginning of a file that tell whether it is a summary."""


def is_on_ranks(args: argparse.Namespace) -> bool:
    """Tell whether ``args`` ask for the ranks, or name nothing but a summary of ranks."""
    return bool(args.ranks) or (len(args.paths) == 1 and _is_summary(args.paths[0]))


def _is_summary(path: str) -> bool:
    from flame.core.rank_summary.signs import is_summary

    try:
        with Path(path).open("rb") as file:
            return is_summary(file.read(_HEAD))
    except OSError:
        return False  # What reads it says why.


def report_ranks(args: argparse.Namespace) -> int:
    """Print the report on the ranks that ``args`` name."""
    from flame.core.rank_summary.opened import summary_of
    from flame.core.ranks.report import SECTIONS

    for name in _OF_ACTIVITIES:
        if getattr(args, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')}: a summary of ranks has no activities")
    names = chosen_sections(args.section, SECTIONS)
    if names is None:
        return 0
    if not args.paths:
        raise UsageError("name a summary: flame report --ranks run.flamesum")
    from flame.console.progress import load_with_progress

    inputs = inputs_of(args)
    check_target(args, inputs)
    profile = load_with_progress(inputs, load_options_of(args), None)
    summary = summary_of(profile)
    if summary is None:
        paths = " ".join(map(str, inputs.paths[:3])) + (" …" if len(inputs.paths) > 3 else "")
        raise UsageError(f"--ranks is for one summary: flame ranks {paths} -o run.flamesum")
    print_ranks(args, summary, selection_of(args, "short"), names)
    return 0


def print_summary(summary: RankSummary, paths: Sequence[str], *, as_json: bool) -> None:
    """Print what the ranks tell of ``summary``, which is at ``paths``: as flame ranks does."""
    from flame.core.ranks.report import SECTIONS
    from flame.options.parser import Parser

    parser = Parser(prog="flame ranks", add_help=False)
    add_selection(parser)
    args = parser.parse_args([])
    form = {"json": as_json, "md": False, "csv": None, "html": None, "output": None}
    vars(args).update(form, paths=list(paths), top=10, rows=1_000, unit=None)
    print_ranks(args, summary, selection_of(args, "short"), list(SECTIONS))


def print_ranks(
    args: argparse.Namespace, summary: RankSummary, selection: Selection, names: list[str]
) -> None:
    """Print the sections of these ``names`` on the ranks of ``summary``, or write them.

    Layers of a model, and names that differ in numbers, are one: of each there would be little.
    """
    from flame.core.rank_summary.opened import profile_of
    from flame.core.ranks.rank_sections.of_summary import questions_of, with_levels
    from flame.core.ranks.report import rank_sections
    from flame.reporting.links import links

    profile = profile_of(summary)
    numbers = getattr(args, "fold_numbers", None) is not False
    naming = replace(selection.naming, fold=True, numbers=numbers)
    selection = with_levels(replace(selection, naming=naming, forward=True), profile)
    sections = rank_sections(questions_of(summary, selection, profile), names)
    inputs = inputs_of(args)
    link = links(inputs.spelled, load_options_of(args), selection)
    hand_over(args, inputs, sections, link, partial(_icicle, summary, selection))


def _icicle(summary: RankSummary, selection: Selection) -> str:
    from flame.core.projection.number_folds import folds_numbers
    from flame.core.projection.project import project
    from flame.core.rank_summary.opened import profile_of
    from flame.exporters.pictures.icicle_svg import icicle_svg

    profile = profile_of(summary)
    tree = project(profile, selection)
    return icicle_svg(tree, folded=folds_numbers(profile, selection.naming, tree))
