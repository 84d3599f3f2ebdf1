"""`flame export`: what is shown of traces, written to a file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from flame.console.progress import load_with_progress
from flame.console.terminal import say
from flame.core.errors import NoMatchError, UsageError
from flame.core.loading.inputs import Inputs
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.levels import explain_missing_levels
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.core.units import format_count, format_value
from flame.exporters import SUFFIXES, folded, speedscope
from flame.exporters.atomic import STDOUT, atomic_output
from flame.options.selection import load_options_of, selection_of

Write = Callable[[Profile, Selection, BinaryIO, str], list[str]]
"""Writes a file with that name inside; returns what is to be said of it."""


class _Written(NamedTuple):
    """The tree that was written, and what is to be said of it."""

    tree: StackTree
    notes: list[str]


def export(args: argparse.Namespace) -> int:
    """Write what ``args`` of the command line say, and tell how much that was."""
    options, selection = load_options_of(args), selection_of(args)
    inputs = Inputs(tuple(map(Path, args.paths)))
    target = _output(args, inputs)
    profile = load_with_progress(inputs.paths, options)
    written = _write(profile, selection, target, _WRITERS[args.format], inputs.title)
    for note in written.notes:
        say(f"note: {note}")
    say(f"wrote {'standard output' if target == STDOUT else target}: {_amount(written.tree)}")
    return 0


def _write(
    profile: Profile, selection: Selection, target: str, write: Write, title: str
) -> _Written:
    tree = project(profile, selection)
    if not tree.total[0]:
        raise NoMatchError(f"{title}: nothing to export: {tree.metric.title} is zero")
    with atomic_output(target) as file:
        notes = write(profile, selection, file, title)
    lack = explain_missing_levels(profile, tree.metric, tree.levels)
    return _Written(tree, [*profile.warnings, *notes, *([lack] if lack else [])])


def _amount(tree: StackTree) -> str:
    stacks, metric = format_count(int((tree.own > 0).sum())), tree.metric
    return f"{stacks} stacks, {metric.title} {format_value(int(tree.total[0]), metric.unit)}"


def _write_folded(profile: Profile, selection: Selection, file: BinaryIO, name: str) -> list[str]:
    folded.write(project(profile, selection), file)
    return []


def _write_speedscope(
    profile: Profile, selection: Selection, file: BinaryIO, name: str
) -> list[str]:
    return speedscope.write(profile, selection, file, name=name)


_WRITERS: dict[str, Write] = {"folded": _write_folded, "speedscope": _write_speedscope}


def _output(args: argparse.Namespace, inputs: Inputs) -> str:
    """Where to export to; UsageError rather than lose a file that was not named with ``-o``."""
    if args.output is None:
        name = inputs.stem + SUFFIXES[args.format]
        if os.path.lexists(name):
            raise UsageError(f"{name}: is there already; name the file to write with -o")
        return name
    if inputs.hold(Path(args.output)):
        raise UsageError(f"-o {args.output}: is the trace itself")
    if Inputs(tuple(map(Path, args.ncu))).hold(Path(args.output)):
        raise UsageError(f"-o {args.output}: is what --ncu names")
    return str(args.output)
