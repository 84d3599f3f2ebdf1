"""Declare the options of ``flame diff``, in groups."""

from __future__ import annotations

import argparse

from flame.cli.arguments import TRACES
from flame.cli.reopening import add_no_cache
from flame.options.selection import add_selection

_FORMATS = ("folded", "speedscope", "svg")
"""What is written of two sides: other formats have a value for each stack, and not two."""


def declare_options(parser: argparse.ArgumentParser) -> None:
    """Add the options and paths to ``parser``."""
    text = f"BASE and NEW: {TRACES}. One alone with --base-select and --new-select"
    parser.add_argument("paths", metavar="PATH", nargs="*", help=text)
    _add_sides(parser.add_argument_group("the two sides"))
    _add_comparing(parser.add_argument_group("how they are compared"))
    _add_output(parser.add_argument_group("output"))
    _add_condition(parser.add_argument_group("a condition, for scripts"))
    _add_app(parser.add_argument_group("how the app shows it"))
    add_selection(parser, in_app=True)
    add_no_cache(parser)
    parser.set_defaults(fold_layers=True)


def _add_sides(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    for side in ("base", "new"):
        name = side.upper()
        text = f"a run of {name}, in place of PATH; several paths are its ranks; may be repeated: "
        text += "with 4 runs of each side chance is told from change"
        add(f"--{side}", metavar="PATH", nargs="+", action="append", default=[], help=text)
    for side in ("base", "new"):
        text = f"compare only what these filters leave of {side.upper()}: '--step 3-5'"
        add(f"--{side}-select", metavar="OPTIONS", default="", help=text)
    text = "keep of one side alone what comparing with it later needs, in this file"
    text += " (NAME.flame-base.json.gz), which is a PATH then"
    add("--keep-base", metavar="FILE", help=text)


def _add_comparing(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "compare values per step, second, activity, share (of all), rank or total, or say how "
    text += "many units BASE and NEW had: 1000,1200 (default: rank where one is a summary of "
    text += "ranks, step where both have some, else total)"
    add("--per", metavar="BASIS", help=text)
    text = "ranges whose name matches are the iterations, of traces on both sides"
    add("--iteration", metavar="RE", help=text)
    text = "from which part of a frame's base, and of all, on a change counts (default: 5%%,0.5%%)"
    add("--min-change", metavar="P,P", default="5%,0.5%", help=text)
    text = "by how much two runs of one program may differ; told where there are not 4 runs of "
    text += "each side (default: 2%%)"
    add("--run-noise", metavar="P", default="2%", help=text)
    text = "keep the layers of a model apart, which are compared as one"
    add("--no-fold-layers", dest="fold_layers", action="store_false", help=text)


def _add_output(group: argparse._ArgumentGroup) -> None:
    add, form = group.add_argument, group.add_mutually_exclusive_group()
    form.add_argument("--print", action="store_true", help="print text, as without a terminal")
    form.add_argument("--json", action="store_true", help="print JSON, for scripts")
    form.add_argument("--md", action="store_true", help="print Markdown, for a pull request")
    text = "write a file of both sides (folded has two columns, as difffolded.pl writes them; svg "
    text += "is the icicle coloured by the change)"
    text += f": {', '.join(_FORMATS)}"
    form.add_argument("-f", "--format", choices=_FORMATS, metavar="FORMAT", help=text)
    text = "write into this file; - is standard output, as without it"
    add("-o", "--output", metavar="FILE", help=text)
    add("--force", action="store_true", help="let -o replace a file")
    text = "sections to show, of all by default; help lists them"
    add("--section", metavar="S,S,…", help=text)
    add("--top", metavar="N", type=int, default=10, help="rows of a table (default: %(default)s)")
    text = "unit of all times: ns, us, ms or s (default: the best for each; JSON has ns)"
    add("--unit", choices=("ns", "us", "ms", "s"), metavar="UNIT", help=text)


def _add_condition(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "exit with 5 where this condition holds, with 6 where more has to be recorded to tell: "
    text += "'step.p50 > +5%% and kernels > +100'"
    add("--fail-on", metavar="EXPR", help=text)
    text = "what a condition that cannot be decided exits with: fail (5) or pass (0), not 6"
    add("--on-undecided", choices=("fail", "pass"), help=text)


def _add_app(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "how wide frames are: both (the wider of both; default in the app), new (default of -f "
    text += "folded: the last column) or base"
    add("--widths", choices=("both", "new", "base"), metavar="SIDE", help=text)
    text = "colour frames by the change of their total (default) or self, in the app"
    choices = ("total", "self")
    add("--colour-by", type=_measured, choices=choices, default="total", metavar="BY", help=text)
    add("--all-changes", action="store_true", help="colour small changes, too, in the app")
    text = "whose timeline the app shows: new (default) or base"
    add("--timeline", choices=("new", "base"), default="new", metavar="SIDE", help=text)
    text = "begin at a place that C has copied in the app: JSON, or a file"
    add("--state", metavar="JSON|FILE", help=text)


def _measured(text: str) -> str:
    """Return what ``--colour-by`` names; ``own`` is self, as lines that were copied may have it."""
    return "self" if text == "own" else text
