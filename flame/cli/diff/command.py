"""Run ``flame diff``: compare two runs, before and after."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from flame.cli.arguments import TRACES
from flame.cli.diff.output import (
    keep,
    tell_decision,
    write,
)
from flame.cli.diff.sides import InputSides, load_sides, sides_of
from flame.cli.outputs import check_output, chosen_sections, write_output
from flame.cli.reopening import add_no_cache, profile_cache
from flame.cli.streams import is_on_terminal
from flame.core.errors import UsageError
from flame.core.starting import delay_collection, prepare_process
from flame.options.selection import add_selection, selection_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flame.core.compare.basis import Per
    from flame.core.compare.changes import Limits

_FORMATS = ("folded", "speedscope", "svg")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    text = f"BASE and NEW: {TRACES}. One alone with --base-select and --new-select"
    parser.add_argument("paths", metavar="PATH", nargs="*", help=text)
    add = parser.add_argument
    for side in ("base", "new"):
        name = side.upper()
        text = f"a run of {name}, in place of PATH; several paths are its ranks; may be repeated: "
        text += "with 4 runs of each side chance is told from change"
        add(f"--{side}", metavar="PATH", nargs="+", action="append", default=[], help=text)
    for side in ("base", "new"):
        text = f"compare only what these filters leave of {side.upper()}: '--step 3-5'"
        add(f"--{side}-select", metavar="OPTIONS", default="", help=text)
    text = "compare values per step, second, activity, share (of all), rank or total, or say how "
    text += "many units BASE and NEW had: 1000,1200 (default: rank where one is a summary of "
    text += "ranks, step where both have some, else total)"
    add("--per", metavar="BASIS", help=text)
    text = "from which part of a frame's base, and of all, on a change counts (default: 5%%,0.5%%)"
    add("--min-change", metavar="P,P", default="5%,0.5%", help=text)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--print", action="store_true", help="print text, as without a terminal")
    form.add_argument("--json", action="store_true", help="print JSON, for scripts")
    form.add_argument("--md", action="store_true", help="print Markdown, for a pull request")
    text = "write a file of both sides: folded has two columns, as difffolded.pl writes them; svg "
    text += "is the icicle coloured by the change"
    form.add_argument("-f", "--format", choices=_FORMATS, help=text)
    text = "how wide frames are: both (the wider of both; default in the app), new (default of -f "
    text += "folded: the last column) or base"
    add("--widths", choices=("both", "new", "base"), metavar="SIDE", help=text)
    text = "colour frames by the change of their total (default) or own time, in the app"
    add("--colour-by", choices=("total", "own"), default="total", metavar="BY", help=text)
    add("--all-changes", action="store_true", help="colour small changes, too, in the app")
    text = "whose timeline the app shows: new (default) or base"
    add("--timeline", choices=("new", "base"), default="new", metavar="SIDE", help=text)
    text = "begin at a place that C has copied in the app: JSON, or a file"
    add("--state", metavar="JSON|FILE", help=text)
    text = "exit with 5 where this condition holds, with 6 where more has to be recorded to tell: "
    text += "'step.p50 > +5%% and kernels > +100'"
    add("--fail-on", metavar="EXPR", help=text)
    text = "what a condition that cannot be decided exits with: fail (5) or pass (0), not 6"
    add("--on-undecided", choices=("fail", "pass"), help=text)
    text = "by how much two runs of one program may differ; told where there are not 4 runs of "
    text += "each side (default: 2%%)"
    add("--run-noise", metavar="P", default="2%", help=text)
    text = "keep of one side alone what comparing with it later needs, in this file"
    text += " (NAME.flame-base.json.gz), which is a PATH then"
    add("--keep-base", metavar="FILE", help=text)
    text = "write into this file; - is standard output, as without it"
    add("-o", "--output", metavar="FILE", help=text)
    add("--force", action="store_true", help="let -o replace a file")
    text = "sections to show, of all by default; help lists them"
    add("--section", metavar="S,S,…", help=text)
    add("--top", metavar="N", type=int, default=10, help="rows of a table (default: %(default)s)")
    text = "unit of all times: ns, us, ms or s (default: the best for each; JSON has ns)"
    add("--unit", choices=("ns", "us", "ms", "s"), metavar="UNIT", help=text)
    add_no_cache(parser)
    add_selection(parser, in_app=True)
    text = "keep the layers of a model apart, which are compared as one"
    add("--no-fold-layers", dest="fold_layers", action="store_false", help=text)
    parser.set_defaults(run=run, fold_layers=True)


def run(args: argparse.Namespace) -> int:
    """Compare the two sides of ``args``."""
    prepare_process()
    from flame.core.compare.diff_report import SECTIONS

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
