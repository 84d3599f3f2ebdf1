"""Run ``flame top``: list the frames that weigh most."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from flame.cli.arguments import add_paths, inputs_of, side_inputs_of
from flame.cli.outputs import check_output, write_output
from flame.cli.reopening import add_no_cache, profile_cache
from flame.cli.streams import WIDEST_TEXT, print_text, terminal_width
from flame.console.terminal import say
from flame.core.errors import NoMatchError, UsageError
from flame.core.nearest import did_you_mean
from flame.core.starting import prepare_process
from flame.options.selection import (
    add_selection,
    load_options_of,
    named_as_shown,
    selection_of,
)

if TYPE_CHECKING:
    from flame.core.model.frames import Kind
    from flame.core.model.profile import Profile
    from flame.core.model.tree import StackTree
    from flame.core.projection.selection import Selection
    from flame.core.report.table import Table

_ROWS = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_paths(parser)
    _add_frames(parser.add_argument_group("which frames"))
    _add_output(parser.add_argument_group("output"))
    add_selection(parser)
    add_no_cache(parser)
    parser.set_defaults(run=run)


def _add_frames(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = f"frames to list (default: {_ROWS}, in JSON and CSV all)"
    add("-n", "--rows", metavar="N", type=int, help=text)
    text = (
        "what to sort by: self, total, count, mean, p50, p95, p99 or max; where shapes of operators"
    )
    text += " are known, tflops, peak, bandwidth or bound; where GPU metrics were sampled, sm, "
    text += "tensor, dram, sampled or moved (default: %(default)s)"
    add("--by", metavar="COLUMN", default="self", help=text)
    add("--level", metavar="LEVEL", help="only frames of this level, such as kernel or nvtx")
    text = "only frames whose name matches, wherever in it; small letters match both"
    add("--name", metavar="RE", help=text)


def _add_output(group: argparse._ArgumentGroup) -> None:
    add, form = group.add_argument, group.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, for scripts: all frames")
    text = "print CSV, for spreadsheets and scripts: all frames"
    form.add_argument("--csv", action="store_true", help=text)
    form.add_argument("--md", action="store_true", help="print Markdown, for a pull request")
    text = "write into this file; - is standard output, as without it"
    add("-o", "--output", metavar="FILE", help=text)
    add("--force", action="store_true", help="let -o replace a file")


def run(args: argparse.Namespace) -> int:
    """List the frames of the traces of ``args``."""
    if args.rows is not None and args.rows < 1:
        raise UsageError(f"--rows {args.rows}: is no number of rows")
    prepare_process()
    selection, inputs = selection_of(args), inputs_of(args)
    if not (args.json or args.csv):
        selection = named_as_shown(args, selection)
    kind = None if args.level is None else _kind(args.level)
    name = None if args.name is None else _pattern(args.name)
    check_output(args.output, (inputs, side_inputs_of(args)), args.force)
    with profile_cache(args, selection) as cache:
        from flame.console.progress import load_with_progress

        profile = load_with_progress(inputs, load_options_of(args), cache)
        tree, table = _table(args, profile, selection, kind, name, inputs.title)
    text = _written(args, tree, table, inputs.title)
    if args.output is None and not args.csv:
        print_text(text)
    else:
        data = text.encode()
        write_output(args.output, lambda file: file.write(data), args.force)
    for note in profile.warnings:
        say(f"note: {note}")
    return 0


def _kind(level: str) -> Kind:
    from flame.core.model.frames import Kind

    kinds = {kind.title: kind for kind in Kind}
    if level not in kinds:
        meant = did_you_mean(level, kinds)
        raise UsageError(f"--level {level}: is none of {', '.join(kinds)}{meant}")
    return kinds[level]


def _pattern(text: str) -> re.Pattern[str]:
    """Compile ``text`` as the search of the app does: only a capital letter tells cases apart."""
    from flame.core.regex import compile_expression

    try:
        return compile_expression(text, 0 if text != text.lower() else re.IGNORECASE)
    except UsageError as error:
        raise UsageError(f"--name: {error}") from None


def _table(
    args: argparse.Namespace,
    profile: Profile,
    selection: Selection,
    kind: Kind | None,
    name: re.Pattern[str] | None,
    title: str,
) -> tuple[StackTree, Table]:
    """Make the table, sorted, of as many rows as are wanted; NoMatchError where it has none."""
    from flame.core.projection.project import project
    from flame.exporters.tables.frame_table import FrameColumns

    tree = project(profile, selection)
    found = FrameColumns(profile, tree, selection)
    if args.by not in found.orders:
        known = ", ".join(found.orders) + did_you_mean(args.by, found.orders)
        raise UsageError(f"--by {args.by}: {tree.metric.title} has none; choose from {known}")
    fits = None if name is None else found.matching(name)
    table = found.table(found.rows(args.by, kind, fits))
    if not table.rows or not tree.total[0]:
        of = "" if args.level is None else f" of the level {args.level}"
        of += "" if name is None else f" called {args.name}"
        raise NoMatchError(f"{title}: no frame{of} has any {tree.metric.title}")
    is_all = args.rows is None and (args.json or args.csv)
    for note in found.notes:
        say(f"note: {note}")
    return tree, table if is_all else table.first(args.rows or _ROWS)


def _written(args: argparse.Namespace, tree: StackTree, table: Table, title: str) -> str:
    from flame.exporters.tables.files import as_csv, as_json

    if args.json:
        return as_json(table, tree, title)
    if args.csv:
        return as_csv(table)
    from flame.core.report.table import Section
    from flame.exporters.pictures.svg import titled
    from flame.reporting.markdown import as_markdown
    from flame.reporting.text import as_text

    section = Section("top", titled(tree, title), tables=(table,))
    if args.md:
        return as_markdown([section], table.total)
    width = min(terminal_width(WIDEST_TEXT), 2 * WIDEST_TEXT)
    return as_text([section], width, table.total)
