"""Run ``flame report``: say what is wrong with a run, in numbers that add up."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from flame.cli.arguments import add_paths, inputs_of
from flame.cli.reopening import add_no_cache, profile_cache
from flame.cli.streams import WIDEST_TEXT, print_text, terminal_width
from flame.console.terminal import say
from flame.core.errors import UsageError
from flame.core.starting import prepare_process
from flame.core.units import format_counted
from flame.options.selection import add_selection, load_options_of, selection_of

if TYPE_CHECKING:
    from flame.core.loading.inputs import Inputs
    from flame.core.projection.selection import Selection
    from flame.core.report.gate.decide import Decision
    from flame.core.report.table import Section

_EXIT_CODES = {True: 5, False: 0, None: 6}
"""By whether the condition of --fail-on holds; None: that cannot be decided."""

_ROWS = 1_000
"""Rows of a table in JSON."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_paths(parser)
    add = parser.add_argument
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, for scripts")
    form.add_argument("--md", action="store_true", help="print Markdown, for a pull request")
    text = "write a CSV file per table into this folder, which must be empty or not there yet"
    form.add_argument("--csv", metavar="DIR", help=text)
    add("--force", action="store_true", help="let --csv write into a folder that is not empty")
    text = "sections to show, of all by default; help lists them"
    add("--section", metavar="S,S,…", help=text)
    text = "phases as a JSON file: {PHASE: [PATTERN, …], …}; show prints those of kernels"
    add("--phases", metavar="FILE", help=text)
    text = "ranges whose name matches are the iterations"
    add("--iteration", metavar="RE", help=text)
    text = "only these iterations, by their numbers: 3-5, or 7"
    add("--iterations", metavar="A-B", help=text)
    text = "exit with 5 where this condition holds, with 6 where the trace cannot tell: "
    text += "'idle > 30%% or step.p95 > 45ms'"
    add("--fail-on", metavar="EXPR", help=text)
    add("--top", metavar="N", type=int, default=10, help="rows of a table (default: %(default)s)")
    text = "tables that are long, too: config (kernels), pace (launches), path (ranges)"
    add("--by", metavar="T,T,…", help=text)
    text = "unit of all times: ns, us, ms or s (default: the best for each; JSON has ns)"
    add("--unit", choices=("ns", "us", "ms", "s"), metavar="UNIT", help=text)
    text = "type of tensors in products, such as bf16, where the trace tells none"
    add("--dtype", metavar="T", help=text)
    add_no_cache(parser)
    add_selection(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the report on the traces of ``args``."""
    if args.top < 1:
        raise UsageError(f"--top {args.top}: is no number of rows")
    prepare_process()
    names = None if _shows_phases(args) else _sections(args.section)
    if names is None:
        return 0
    from flame.console.progress import load_with_progress
    from flame.core.report.gate.decide import as_facts, decide, read_condition
    from flame.core.report.options import (
        check_dtype,
        read_phases,
        with_iteration,
        with_iterations,
        without_steps,
    )
    from flame.core.report.report import Report
    from flame.core.report.scope import Scope

    selection = with_iterations(selection_of(args), args.iterations)
    details = _details(args.by)
    phases = () if args.phases is None else read_phases(args.phases)
    dtype = "" if args.dtype is None else check_dtype(args.dtype)
    condition = None if args.fail_on is None else read_condition(args.fail_on)
    inputs = inputs_of(args)
    with profile_cache(args, selection) as cache:
        profile = load_with_progress(inputs.paths, load_options_of(args), cache)
        profile = with_iteration(profile, args.iteration)
        scope = Scope(profile, selection, details, phases, dtype)
        sections = Report(scope).sections(names)
        decision = None if condition is None else decide(scope, condition)
        if args.csv is not None:
            _write_files(args, sections)
        else:
            shown = selection if args.iteration is None else without_steps(selection)
            print_text(_written(args, inputs, shown, sections, decision))
        if decision is not None and not args.json:
            print_text(json.dumps(as_facts(args.fail_on, decision)) + "\n")
    return 0 if decision is None else _EXIT_CODES[decision.holds]


def _write_files(args: argparse.Namespace, sections: list[Section]) -> None:
    from flame.reporting.csv_files import write_csv

    written = write_csv(sections, Path(args.csv), replace=args.force)
    say(f"wrote {args.csv}: {format_counted(len(written), 'file', 'files')}")


def _shows_phases(args: argparse.Namespace) -> bool:
    """Whether the patterns of kernels are asked for, which are printed."""
    if args.phases != "show":
        return False
    from flame.core.report.program.phases import built_in_patterns

    print_text(built_in_patterns())
    return True


def _sections(text: str | None) -> list[str] | None:
    """The sections that ``text`` names; None where it asks which there are, which is answered."""
    from flame.core.report.report import SECTIONS

    names = list(SECTIONS) if text is None else [name.strip() for name in text.split(",")]
    if names == ["help"]:
        print_text("".join(f"{kind.name:<14}{kind.title}\n" for kind in SECTIONS.values()))
        return None
    if unknown := [name for name in names if name not in SECTIONS]:
        raise UsageError(f"--section {unknown[0]}: is none of {', '.join(SECTIONS)}")
    return names


def _details(text: str | None) -> frozenset[str]:
    from flame.core.report.scope import DETAILS

    names = [] if text is None else [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in DETAILS]:
        raise UsageError(f"--by {unknown[0]}: is none of {', '.join(DETAILS)}")
    return frozenset(names)


def _written(
    args: argparse.Namespace,
    inputs: Inputs,
    selection: Selection,
    sections: list[Section],
    decision: Decision | None,
) -> str:
    if args.json:
        from flame.core.report.gate.decide import as_facts
        from flame.reporting.links import links
        from flame.reporting.report_json import as_json

        link = links(inputs.paths, load_options_of(args), selection)
        about: dict[str, object] = {"path": [str(path) for path in inputs.paths]}
        if decision is not None:
            about["gate"] = as_facts(args.fail_on, decision)
        return as_json(sections, _ROWS, link, **about)
    if args.md:
        from flame.reporting.markdown import as_markdown

        return as_markdown(sections, args.top, args.unit)
    from flame.reporting.text import as_text

    width = min(terminal_width(WIDEST_TEXT), WIDEST_TEXT)
    return as_text(sections, width, args.top, args.unit)
