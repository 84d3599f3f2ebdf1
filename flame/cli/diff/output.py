"""Write what ``flame diff`` tells, and what it keeps."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from flame.cli.diff.sides import InputSides, kept_side, load_side
from flame.cli.reopening import profile_cache
from flame.cli.streams import WIDEST_TEXT, escaped_on_terminal, print_text, terminal_width
from flame.console.terminal import say
from flame.core.errors import UsageError
from flame.options.selection import load_options_of, selection_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    from flame.core.compare.comparison import Comparison
    from flame.core.compare.gate.decide import Decision
    from flame.core.loading.inputs import Inputs
    from flame.core.report.table import Section

_EXIT_CODES = {True: 5, False: 0, None: 6}
"""By whether the condition of --fail-on holds; None: that cannot be decided."""

_ON_UNDECIDED = {"fail": 5, "pass": 0}
_ROWS = 1_000


def keep(args: argparse.Namespace) -> int:
    """Keep the runs of one side in a file."""
    from flame.core.compare.keep import keep_run
    from flame.core.compare.kept.base_file import encode_base

    inputs = kept_side(args)
    args.output = args.keep_base
    check_output(args, inputs)
    selection = selection_of(args)
    args.paths = [str(path) for one in inputs for path in one.paths]
    with profile_cache(args, selection) as cache:
        loaded = load_side(args, "BASE", inputs, cache)
        data = encode_base([keep_run(run, selection) for run in loaded])
    write_whole(args, lambda file: file.write(data))
    return 0


def tell_decision(
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


def check_output(args: argparse.Namespace, inputs: Sequence[Inputs]) -> None:
    """Raise UsageError before anything is read where what is there must not be replaced."""
    from flame.core.files.atomic import is_stream

    if args.output is None or is_stream(args.output):
        return
    if any(each.hold(Path(args.output)) for each in inputs):
        raise UsageError(f"-o {args.output}: is what is read")
    if os.path.lexists(args.output) and not args.force:
        raise UsageError(f"{args.output}: is there already; --force replaces it")


def section_names(text: str | None) -> list[str] | None:
    """List the sections that ``text`` names; None where it asks for them, which is answered."""
    from flame.core.compare.diff_report import SECTIONS

    names = list(SECTIONS) if text is None else [name.strip() for name in text.split(",")]
    if names == ["help"]:
        print_text("".join(f"{kind.name:<16}{kind.title}\n" for kind in SECTIONS.values()))
        return None
    if unknown := [name for name in names if name not in SECTIONS]:
        raise UsageError(f"--section {unknown[0]}: is none of {', '.join(SECTIONS)}")
    return names


def write_whole(args: argparse.Namespace, write: Callable[[BinaryIO], object]) -> None:
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
    from flame.core.compare.diff_report import diff_sections

    text = _written(args, sides, diff_sections(comparison, names), gate)
    file.write(text.encode("utf-8", "replace"))


def _write_format(
    args: argparse.Namespace,
    sides: InputSides,
    comparison: Comparison,
    file: BinaryIO,
) -> None:
    from flame.reporting.diff_files import write_folded, write_speedscope

    file = escaped_on_terminal(file, args.format)
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
