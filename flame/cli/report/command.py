"""Run ``flame report``: say what is wrong with a run, in numbers that add up."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from flame.cli.arguments import TRACES, inputs_of
from flame.cli.outputs import GATE_EXIT_CODES, chosen_sections
from flame.cli.reopening import add_no_cache, profile_cache
from flame.cli.report.output import check_options, check_target, hand_over
from flame.cli.report.ranks import is_on_ranks, report_ranks
from flame.cli.streams import print_text
from flame.console.terminal import say
from flame.core.errors import UsageError
from flame.core.starting import delay_collection, prepare_process
from flame.options.selection import (
    add_selection,
    load_options_of,
    named_as_shown,
    selection_of,
)

if TYPE_CHECKING:
    from flame.core.loading.inputs import Inputs
    from flame.core.model.profile import Profile
    from flame.core.reopening.profile_cache import ProfileCache
    from flame.core.report.gate.condition import Condition
    from flame.core.report.scope import Scope
    from flame.reporting.links import Link

_ROWS = 1_000
_OF_LAUNCHES = frozenset(("findings", "kernels", "copies", "tails", "processes"))
"""Sections that tell how activities were launched."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("paths", metavar="PATH", nargs="*", help=TRACES)
    add = parser.add_argument
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, for scripts")
    form.add_argument("--md", action="store_true", help="print Markdown, for a pull request")
    text = "write a CSV file per table into this folder, which must be empty or not there yet"
    form.add_argument("--csv", metavar="DIR", help=text)
    text = "write a page that loads nothing from elsewhere, with the icicle as a picture"
    form.add_argument("--html", metavar="FILE", help=text)
    text = "write text, JSON or Markdown into this file; - is standard output, as without it"
    add("-o", "--output", metavar="FILE", help=text)
    text = "let -o and --html replace a file, and --csv write into a folder that is not empty"
    add("--force", action="store_true", help=text)
    text = "sections to show, of all by default; help lists them"
    add("--section", metavar="S,S,…", help=text)
    text = "compare the ranks of a summary that flame ranks has written, which is usual of one"
    add("--ranks", action="store_true", help=text)
    text = "ranges whose name matches are the iterations"
    add("--iteration", metavar="RE", help=text)
    text = "only these iterations, by their numbers: 3-5, or 7"
    add("--iterations", metavar="A-B", help=text)
    text = "what a link can do, for the efficiency of copies: pcie=55, c2c=450, nvlink=450"
    add("--link", metavar="NAME=GB/s", action="append", default=[], help=text)
    text = "exit with 5 where this condition holds, with 6 where the trace cannot tell: "
    text += "'idle > 30%% or step.p95 > 45ms'"
    add("--fail-on", metavar="EXPR", help=text)
    add("--top", metavar="N", type=int, default=10, help="rows of a table (default: %(default)s)")
    text = "rows of a table in JSON (default: %(default)s)"
    add("--rows", metavar="N", type=int, default=_ROWS, help=text)
    text = "tables that are long, too: config (kernels), pace (launches), row (api), path (ranges)"
    add("--by", metavar="T,T,…", help=text)
    add("--all", action="store_true", help="all findings, and which rules could not judge")
    text = "unit of all times: ns, us, ms or s (default: the best for each; JSON has ns)"
    add("--unit", choices=("ns", "us", "ms", "s"), metavar="UNIT", help=text)
    add_no_cache(parser)
    add_selection(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the report on the traces of ``args``."""
    check_options(args)
    prepare_process()
    if is_on_ranks(args):
        return report_ranks(args)
    from flame.core.report.report import SECTIONS

    names = None if _shows_phases(args) else chosen_sections(args.section, SECTIONS)
    if names is None:
        return 0
    if not args.paths:
        raise UsageError("name a trace: flame report PATH (see flame report --help)")
    from flame.core.report.measures.copy_references import read_links
    from flame.core.report.options import check_dtype, with_iterations
    from flame.core.report.report import Report
    from flame.core.report.scope import Scope

    configured = _configured(args)
    selection = with_iterations(selection_of(args), args.iterations)
    details = _details(args.by)
    links = read_links(args.link)
    dtype = "" if args.dtype is None else check_dtype(args.dtype)
    condition = None if args.fail_on is None else _read_condition(args.fail_on)
    inputs = inputs_of(args)
    check_target(args, inputs)
    with profile_cache(args, selection) as cache:
        profile = _loaded(args, inputs, cache, configured, names)
        _check_rows(profile, inputs)
        scope = Scope(profile, selection, details, links, args.all, dtype)
        sections = Report(scope).sections(names)
        decision = facts = None
        if condition is not None:
            from flame.core.report.gate.decide import as_facts, decide

            decision = decide(scope, condition)
            facts = as_facts(args.fail_on, decision)
        link = _link(args, inputs, scope)
        hand_over(args, inputs, sections, link, partial(_icicle, args, scope), facts)
    if decision is None:
        return 0
    for name, why in decision.undecided.items():
        say(f"{name} cannot be decided: {why}")
    return GATE_EXIT_CODES[decision.holds]


def _read_condition(text: str) -> Condition:
    # Only here: a condition may ask for any section, and its module imports them.
    from flame.core.report.gate.decide import read_condition

    return read_condition(text)


def _check_rows(profile: Profile, inputs: Inputs) -> None:
    """Raise UsageError for a summary of ranks: a report is of activities."""
    if profile.ranks is not None:
        raise UsageError(f"{inputs.title}: a summary has no activities to report on: flame ranks")


def _configured(args: argparse.Namespace) -> Mapping[str, str]:
    """Let the configuration file say what ``args`` do not; return what it says."""
    from flame.options.config import read_config

    report = read_config().report
    if args.phases is None:
        args.phases = report.get("phases")
    return report


def _loaded(
    args: argparse.Namespace,
    inputs: Inputs,
    cache: ProfileCache | None,
    configured: Mapping[str, str],
    names: Sequence[str],
) -> Profile:
    """Load the traces; what the configuration calls iterations need not be in each of them."""
    from flame.console.progress import load_with_progress
    from flame.core.report.options import with_iteration, with_usual_iteration

    options = replace(load_options_of(args), launches=_asks_for_launches(inputs, names))
    profile = load_with_progress(inputs, options, cache)
    delay_collection()  # sections make few objects and no garbage in circles
    if args.iteration is not None:
        return with_iteration(profile, args.iteration)
    if "iteration" not in configured:
        return profile
    found = with_usual_iteration(profile, configured["iteration"])
    if found is not profile:
        args.iteration = configured["iteration"]
    return found


def _asks_for_launches(inputs: Inputs, names: Sequence[str]) -> bool:
    """Whether sections tell how activities were launched; several files are read elsewhere."""
    return len(inputs.paths) == 1 and not _OF_LAUNCHES.isdisjoint(names)


def _shows_phases(args: argparse.Namespace) -> bool:
    """Whether the patterns of kernels are asked for, which are printed."""
    if args.phases != "show":
        return False
    from flame.core.report.program.phases import built_in_patterns

    print_text(built_in_patterns())
    return True


def _details(text: str | None) -> frozenset[str]:
    from flame.core.report.scope import DETAILS

    names = [] if text is None else [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in DETAILS]:
        raise UsageError(f"--by {unknown[0]}: is none of {', '.join(DETAILS)}")
    return frozenset(names)


def _link(args: argparse.Namespace, inputs: Inputs, scope: Scope) -> Link:
    from flame.core.report.options import without_steps
    from flame.reporting.links import links

    selection = scope.selection
    shown = selection if args.iteration is None else without_steps(selection)
    return links(inputs.spelled, load_options_of(args), shown)


def _icicle(args: argparse.Namespace, scope: Scope) -> str:
    """Draw what is selected, in the names of the app where ``args`` say nothing of these."""
    from flame.core.projection.number_folds import folds_numbers
    from flame.core.projection.project import project
    from flame.exporters.pictures.icicle_svg import icicle_svg

    selection = named_as_shown(args, scope.selection)
    tree = project(scope.profile, selection)
    return icicle_svg(tree, folded=folds_numbers(scope.profile, selection.naming, tree))
