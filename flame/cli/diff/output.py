"""Write what ``flame diff`` tells, and what it keeps."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from flame.cli.diff.sides import InputSides, kept_side, load_side
from flame.cli.outputs import GATE_EXIT_CODES, check_output, refuse_terminal, write_output
from flame.cli.reopening import profile_cache
from flame.cli.streams import WIDEST_TEXT, escaped_for_format, print_text, terminal_width
from flame.console.terminal import say
from flame.options.selection import load_options_of, selection_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from flame.core.compare.comparison import Comparison
    from flame.core.compare.gate.decide import DiffDecision
    from flame.core.report.table import Section

_ON_UNDECIDED = {"fail": 5, "pass": 0}
_ROWS = 1_000


def keep(args: argparse.Namespace) -> int:
    """Keep the runs of one side in a file."""
    from flame.core.compare.keep import keep_run
    from flame.core.compare.kept.base_file import encode_base

    inputs = kept_side(args)
    refuse_terminal(args.keep_base, "a kept base", "--keep-base")
    check_output(args.keep_base, inputs, args.force, "--keep-base")
    selection = selection_of(args)
    args.paths = [str(path) for one in inputs for path in one.paths]
    with profile_cache(args, selection) as cache:
        loaded = load_side(args, "BASE", inputs, cache)
        data = encode_base([keep_run(run, selection) for run in loaded])
    write_output(args.keep_base, lambda file: file.write(data), args.force, is_packed=True)
    return 0


def tell_decision(
    args: argparse.Namespace, decision: DiffDecision, facts: dict[str, object] | None
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
    return GATE_EXIT_CODES[decision.holds]


def write(
    args: argparse.Namespace,
    sides: InputSides,
    comparison: Comparison,
    names: Sequence[str],
    gate: dict[str, object] | None,
    file: BinaryIO,
) -> None:
    """Write a comparison in the format that ``args`` ask for; ``gate`` stands in JSON."""
    if args.format is not None:
        _write_format(args, sides, comparison, file)
        return
    from flame.core.compare.sections.diff_report import diff_sections

    text = _written(args, sides, diff_sections(comparison, names if args.section else None), gate)
    file.write(text.encode("utf-8", "replace"))


def _write_format(
    args: argparse.Namespace,
    sides: InputSides,
    comparison: Comparison,
    file: BinaryIO,
) -> None:
    from flame.reporting.diff_files import write_folded, write_speedscope

    file = escaped_for_format(file, args.format)
    if args.format == "folded":
        write_folded(comparison, file, widths=args.widths or "new")
        return
    if args.format == "svg":
        from flame.reporting.diff_svg import diff_svg

        file.write(diff_svg(comparison, args.widths or "both").encode("utf-8", "replace"))
        return
    title = " → ".join(side[0].title for side in sides)
    for note in write_speedscope(comparison, file, title):
        say(f"note: {note}")


def _written(
    args: argparse.Namespace,
    sides: InputSides,
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
