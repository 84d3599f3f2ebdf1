"""Run ``flame diff``: compare two runs, before and after."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from flame.cli.arguments import TRACES
from flame.cli.reopening import add_no_cache, profile_cache
from flame.cli.streams import WIDEST_TEXT, escaped_on_terminal, print_text, terminal_width
from flame.console.terminal import say
from flame.core.errors import UsageError
from flame.core.starting import prepare_process
from flame.exporters import SUFFIXES
from flame.options.selection import add_selection, load_options_of, parse, selection_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    from flame.core.compare.comparison import Comparison
    from flame.core.compare.gate.decide import Decision
    from flame.core.compare.sides import Run, Sides
    from flame.core.loading.inputs import Inputs
    from flame.core.model.profile import Profile
    from flame.core.projection.filters import Filter
    from flame.core.reopening.profile_cache import ProfileCache
    from flame.core.report.table import Section

_EXIT_CODES = {True: 5, False: 0, None: 6}
"""By whether the condition of --fail-on holds; None: that cannot be decided."""

_ON_UNDECIDED = {"fail": 5, "pass": 0}

_ROWS = 1_000
_WIDTHS = ("new", "base")


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
    text = "compare values per step, second, activity, share (of all) or total, or say how many "
    text += "units BASE and NEW had: 1000,1200 (default: step where both have some, else total)"
    add("--per", metavar="BASIS", help=text)
    text = "from which part of a frame's base, and of all, on a change counts (default: 5%%,0.5%%)"
    add("--min-change", metavar="P,P", default="5%,0.5%", help=text)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--print", action="store_true", help="print text, as without a terminal")
    form.add_argument("--json", action="store_true", help="print JSON, for scripts")
    form.add_argument("--md", action="store_true", help="print Markdown, for a pull request")
    text = "write a file of both sides: folded has two columns, as difffolded.pl writes them"
    form.add_argument("-f", "--format", choices=list(SUFFIXES), help=text)
    text = "which side is the last column, the width of flamegraph.pl (default: %(default)s)"
    add("--widths", choices=_WIDTHS, default=_WIDTHS[0], help=text)
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
    names = _sections(args.section)
    if names is None:
        return 0
    if args.top < 1:
        raise UsageError(f"--top {args.top}: is no number of rows")
    if args.keep_base is not None:
        return _keep(args)
    sides = _inputs_of_sides(args)
    from flame.core.compare.basis import parse_per
    from flame.core.compare.changes import parse_limits
    from flame.core.compare.comparison import compare
    from flame.core.compare.gate.decide import as_facts, decide, parse_noise
    from flame.core.compare.gate.terms import read_condition

    selection = selection_of(args)
    per = "" if args.per is None else parse_per(args.per)
    limits = parse_limits(args.min_change)
    condition = None if args.fail_on is None else read_condition(args.fail_on)
    noise = parse_noise(args.run_noise)
    _check_output(args, [inputs for side in sides for inputs in side])
    args.paths = [str(path) for side in sides for inputs in side for path in inputs.paths]
    with profile_cache(args, selection) as cache:
        loaded = _load(args, sides, cache)
        comparison = compare(loaded, selection, per, limits)
        decision = None if condition is None else decide(comparison, condition, noise)
        facts = None if decision is None else as_facts(args.fail_on, comparison, decision)
        _hand_over(args, sides, comparison, names, facts)
    return 0 if decision is None else _tell_decision(args, decision, facts)


def _tell_decision(
    args: argparse.Namespace, decision: Decision, facts: dict[str, object] | None
) -> int:
    """Print what became of the condition as the last line, for scripts; return the exit code."""
    if not args.json or args.output not in (None, "-"):
        print_text(json.dumps(facts) + "\n")
    for one in decision.undecided:
        say(f"{one.name} cannot be decided: {one.why}")
    for one in decision.failed:
        say(f"--fail-on: {one.words}")
    if decision.holds is None and args.on_undecided is not None:
        return _ON_UNDECIDED[args.on_undecided]
    return _EXIT_CODES[decision.holds]


def _keep(args: argparse.Namespace) -> int:
    """Keep the runs of one side in a file."""
    from flame.core.compare.keep import keep_run
    from flame.core.compare.kept.base_file import encode_base

    runs = args.base or args.new or [[path] for path in args.paths[:1]]
    if not runs or len(args.paths) + bool(args.base) + bool(args.new) > 1:
        raise UsageError("--keep-base takes one side: flame diff TRACE --keep-base FILE")
    args.output = args.keep_base
    inputs = [_inputs(paths) for paths in runs]
    _check_output(args, inputs)
    selection = selection_of(args)
    args.paths = [str(path) for one in inputs for path in one.paths]
    with profile_cache(args, selection) as cache:
        loaded = _load_side(args, "BASE", inputs, _filters(args, "base"), cache)
        data = encode_base([keep_run(run, selection) for run in loaded])
    _write_whole(args, lambda file: file.write(data))
    return 0


def _inputs_of_sides(args: argparse.Namespace) -> tuple[list[Inputs], list[Inputs]]:
    """List the runs of both sides."""
    if args.base or args.new:
        if args.paths or not (args.base and args.new):
            raise UsageError("name both sides by --base and --new, or both as PATH")
        return list(map(_inputs, args.base)), list(map(_inputs, args.new))
    if len(args.paths) == 1 and (args.base_select or args.new_select):
        return [_inputs(args.paths)], [_inputs(args.paths)]
    if len(args.paths) != 2:
        raise UsageError(
            "name two traces: flame diff BASE NEW; several runs of a side by --base and --new "
            "(see flame diff --help)"
        )
    return [_inputs(args.paths[:1])], [_inputs(args.paths[1:])]


def _inputs(paths: Sequence[str]) -> Inputs:
    from flame.core.loading.inputs import Inputs

    return Inputs(tuple(map(Path, paths)))


def _load(
    args: argparse.Namespace, sides: tuple[list[Inputs], list[Inputs]], cache: ProfileCache | None
) -> Sides:
    """Load all runs; a trace that is on both sides, once."""
    from flame.core.compare.sides import SIDES, Sides

    known: dict[tuple[Path, ...], Profile] = {}
    filters = (_filters(args, "base"), _filters(args, "new"))
    base, new = (
        _load_side(args, name, side, where, cache, known)
        for name, side, where in zip(SIDES, sides, filters, strict=True)
    )
    return Sides(base, new)


def _load_side(
    args: argparse.Namespace,
    name: str,
    inputs: Sequence[Inputs],
    where: tuple[Filter, ...],
    cache: ProfileCache | None,
    known: dict[tuple[Path, ...], Profile] | None = None,
) -> tuple[Run, ...]:
    """Load the runs of a side that are not ``known``, or open the base that was kept of it."""
    from flame.console.progress import load_with_progress
    from flame.core.compare.kept.base_file import is_kept_base
    from flame.core.compare.sides import runs_of

    paths = [path for one in inputs for path in one.paths]
    if len(paths) == 1 and is_kept_base(paths[0]):
        return _kept_runs(paths[0], name, where)
    known = {} if known is None else known
    options = load_options_of(args)
    for one in inputs:
        if one.paths not in known:
            known[one.paths] = load_with_progress(one.paths, options, cache)
    return runs_of(name, [known[one.paths] for one in inputs], where)


def _kept_runs(path: Path, side: str, where: tuple[Filter, ...]) -> tuple[Run, ...]:
    from flame.core.compare.sides import open_runs

    if where:
        raise UsageError(f"--{side.lower()}-select: {path} is a kept base; filter when keeping it")
    return open_runs(path, side)


def _filters(args: argparse.Namespace, side: str) -> tuple[Filter, ...]:
    """Parse the filters of one side; UsageError for other options."""
    from dataclasses import replace

    option, text = f"--{side}-select", getattr(args, f"{side}_select")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option} '{text}': {error}") from None
    options, selection = parse(words)
    usual_options, usual = parse([])
    if (options, replace(selection, where=())) != (usual_options, usual):
        raise UsageError(f"{option} '{text}': takes filters alone, such as --step or --time")
    return selection.where


def _check_output(args: argparse.Namespace, inputs: Sequence[Inputs]) -> None:
    """Raise UsageError before anything is read where what is there must not be replaced."""
    from flame.core.files.atomic import is_stream

    if args.output is None or is_stream(args.output):
        return
    if any(each.hold(Path(args.output)) for each in inputs):
        raise UsageError(f"-o {args.output}: is what is read")
    if os.path.lexists(args.output) and not args.force:
        raise UsageError(f"{args.output}: is there already; --force replaces it")


def _sections(text: str | None) -> list[str] | None:
    """The sections that ``text`` names; None where it asks which there are, which is answered."""
    from flame.core.compare.diff_report import SECTIONS

    names = list(SECTIONS) if text is None else [name.strip() for name in text.split(",")]
    if names == ["help"]:
        print_text("".join(f"{kind.name:<16}{kind.title}\n" for kind in SECTIONS.values()))
        return None
    if unknown := [name for name in names if name not in SECTIONS]:
        raise UsageError(f"--section {unknown[0]}: is none of {', '.join(SECTIONS)}")
    return names


def _hand_over(
    args: argparse.Namespace,
    sides: tuple[list[Inputs], list[Inputs]],
    comparison: Comparison,
    names: Sequence[str],
    gate: dict[str, object] | None,
) -> None:
    """Print the comparison, or write it where ``args`` say."""
    _write_whole(args, lambda file: _write(args, sides, comparison, names, gate, file))


def _write_whole(args: argparse.Namespace, write: Callable[[BinaryIO], object]) -> None:
    """Write where ``args`` say, all or nothing."""
    from flame.core.files.atomic import OccupiedError, atomic_output, is_stream

    target = "-" if args.output is None else args.output
    try:
        with atomic_output(target, replace=args.force or is_stream(target)) as file:
            write(file)
    except OccupiedError as error:  # It has appeared meanwhile.
        raise UsageError(f"{error}; --force replaces it") from None
    if target != "-":
        say(f"wrote {target}")


def _write(
    args: argparse.Namespace,
    sides: tuple[list[Inputs], list[Inputs]],
    comparison: Comparison,
    names: Sequence[str],
    gate: dict[str, object] | None,
    file: BinaryIO,
) -> None:
    if args.format is not None:
        _write_format(args, sides, comparison, file)
        return
    from flame.core.compare.diff_report import diff_sections

    text = _written(args, sides, diff_sections(comparison, names), gate)
    file.write(text.encode("utf-8", "replace"))


def _write_format(
    args: argparse.Namespace,
    sides: tuple[list[Inputs], list[Inputs]],
    comparison: Comparison,
    file: BinaryIO,
) -> None:
    from flame.reporting.diff_files import write_folded, write_speedscope

    file = escaped_on_terminal(file, args.format)
    if args.format == "folded":
        write_folded(comparison, file, widths=args.widths)
        return
    title = " → ".join(side[0].title for side in sides)
    for note in write_speedscope(comparison, file, title):
        say(f"note: {note}")


def _written(
    args: argparse.Namespace,
    sides: tuple[list[Inputs], list[Inputs]],
    sections: list[Section],
    gate: dict[str, object] | None,
) -> str:
    if args.json:
        from flame.reporting.links import links
        from flame.reporting.report_json import as_json

        base, new = ([list(map(str, one.paths)) for one in side] for side in sides)
        about: dict[str, object] = {"base": base, "new": new}
        if gate is not None:
            about["gate"] = gate
        link = links(sides[1][0].paths, load_options_of(args), selection_of(args))
        return as_json(sections, _ROWS, link, about, "flame_diff")
    if args.md:
        from flame.reporting.markdown import as_markdown

        return as_markdown(sections, args.top, args.unit)
    from flame.reporting.text import as_text

    printed = args.output in (None, "-")
    width = min(terminal_width(WIDEST_TEXT), WIDEST_TEXT) if printed else WIDEST_TEXT
    return as_text(sections, width, args.top, args.unit)
