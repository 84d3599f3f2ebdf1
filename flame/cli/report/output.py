"""Hand over the sections of a report: print them, or write them where the arguments say."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flame.cli.arguments import side_inputs_of
from flame.cli.outputs import check_output, write_output
from flame.cli.streams import WIDEST_TEXT, print_text, terminal_width
from flame.console.terminal import say
from flame.core.errors import UsageError
from flame.core.units import format_counted

if TYPE_CHECKING:
    from flame.core.loading.inputs import Inputs
    from flame.core.report.table import Section
    from flame.reporting.links import Link


def check_options(args: argparse.Namespace) -> None:
    """Raise UsageError for options that mean nothing, or nothing together."""
    for option, number in (("--top", args.top), ("--rows", args.rows)):
        if number < 1:
            raise UsageError(f"{option} {number}: is no number of rows")
    if args.output is not None and (args.csv is not None or args.html is not None):
        raise UsageError("-o is for text, --json and --md: --csv and --html name what they write")


def check_target(args: argparse.Namespace, inputs: Inputs) -> None:
    """Raise UsageError before anything is read where what is there must not be replaced."""
    option, name = ("-o", args.output) if args.html is None else ("--html", args.html)
    check_output(name, (inputs, side_inputs_of(args)), args.force, option)


def hand_over(
    args: argparse.Namespace,
    inputs: Inputs,
    sections: Sequence[Section],
    link: Link,
    icicle: Callable[[], str],
    decision: Mapping[str, object] | None = None,
) -> None:
    """Print ``sections``, or write them where ``args`` say.

    Where rows lead ``link`` tells, ``icicle`` draws the picture of a page. What a condition was
    decided to be is printed besides.
    """
    if args.csv is not None:
        _write_files(args, sections)
    elif args.html is not None:
        _write_file(args, args.html, _page(args, inputs, sections, link, icicle()))
    else:
        text = _written(args, inputs, sections, link, decision)
        if _is_printed(args):
            print_text(text)
        else:
            _write_file(args, args.output, text)
    if decision is not None and (not args.json or not _is_printed(args)):
        print_text(json.dumps(decision) + "\n")


def _write_file(args: argparse.Namespace, name: str, text: str) -> None:
    write_output(name, lambda file: file.write(text.encode("utf-8", "replace")), args.force)


def _write_files(args: argparse.Namespace, sections: Sequence[Section]) -> None:
    from flame.reporting.csv_files import write_csv

    written = write_csv(sections, Path(args.csv), replace=args.force)
    say(f"wrote {args.csv}: {format_counted(len(written), 'file', 'files')}")


def _page(
    args: argparse.Namespace,
    inputs: Inputs,
    sections: Sequence[Section],
    link: Link,
    icicle: str,
) -> str:
    from flame.reporting.html import as_html

    return as_html(sections, args.top, link, title=inputs.title, icicle=icicle, unit=args.unit)


def _written(
    args: argparse.Namespace,
    inputs: Inputs,
    sections: Sequence[Section],
    link: Link,
    decision: Mapping[str, object] | None,
) -> str:
    if args.json:
        from flame.reporting.report_json import as_json

        about: dict[str, object] = {"path": inputs.spelled}
        if decision is not None:
            about["gate"] = decision
        return as_json(sections, args.rows, link, about)
    if args.md:
        from flame.reporting.markdown import as_markdown

        return as_markdown(sections, args.top, args.unit)
    from flame.reporting.text import as_text

    width = min(terminal_width(WIDEST_TEXT), WIDEST_TEXT) if _is_printed(args) else WIDEST_TEXT
    return as_text(sections, width, args.top, args.unit, link)


def _is_printed(args: argparse.Namespace) -> bool:
    return args.output in (None, "-")
