"""Run ``flame export``: write the stacks of traces for other tools."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from flame.cli.arguments import add_paths, inputs_of
from flame.cli.outputs import refuse_terminal
from flame.cli.reopening import add_no_cache, profile_cache
from flame.cli.streams import escaped_for_format
from flame.console.terminal import say
from flame.core.errors import NoMatchError, UsageError
from flame.core.starting import prepare_process
from flame.exporters import BINARY, PACKED, PICTURES, SUFFIXES
from flame.options.selection import (
    add_selection,
    load_options_of,
    named_as_shown,
    selection_of,
)

if TYPE_CHECKING:
    from flame.core.loading.inputs import Inputs
    from flame.core.model.profile import Profile
    from flame.core.model.tree import StackTree
    from flame.core.projection.selection import Selection
    from flame.core.reopening.profile_cache import ProfileCache

_NAME_ONE = "name the file to write with -o"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_paths(parser)
    add = parser.add_argument_group("output").add_argument
    text = f"format to write: {', '.join(SUFFIXES)}"
    add("-f", "--format", required=True, choices=SUFFIXES, metavar="FORMAT", help=text)
    text = "where to write; - is standard output (default: the trace's name with the suffix of the "
    text += "format, in this folder, never over an existing file)"
    add("-o", "--output", metavar="FILE", help=text)
    add_selection(parser)
    add_no_cache(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the file that ``args`` ask for, and say how much that was."""
    prepare_process()
    selection = selection_of(args, "demangled" if args.format == "chrome" else "base")
    if args.format in PICTURES:
        selection = named_as_shown(args, selection)
    with profile_cache(args, selection) as cache:
        return _export(args, selection, cache)


def _export(args: argparse.Namespace, selection: Selection, cache: ProfileCache | None) -> int:
    from flame.console.progress import load_with_progress
    from flame.core.files.atomic import STDOUT, OccupiedError
    from flame.core.projection.named_levels import explain_missing_levels
    from flame.exporters.write import Exported, open_export, write

    options = load_options_of(args)
    inputs = inputs_of(args)
    target = _output(args, inputs)
    profile = load_with_progress(inputs, options, cache)
    tree = _exported_tree(profile, selection, inputs.title)
    stacks = Exported(tree, profile, selection, inputs.title)
    try:
        with open_export(target, args.format, replace=args.output is not None) as file:
            notes = write(stacks, args.format, escaped_for_format(file, args.format))
    except OccupiedError as error:  # It has appeared during the load.
        raise UsageError(f"{error}; {_NAME_ONE}") from None
    lack = explain_missing_levels(profile, tree.metric, tree.levels)
    notes = [*profile.warnings, *notes, *([lack] if lack else [])]
    for note in notes:
        say(f"note: {note}")
    say(f"wrote {'standard output' if target == STDOUT else target}: {_amount(tree)}")
    return 0


def _exported_tree(profile: Profile, selection: Selection, title: str) -> StackTree:
    """Return the tree that is written first; NoMatchError where it is empty."""
    from flame.core.projection.project import project

    tree = project(profile, selection)
    if not tree.own.any():
        raise NoMatchError(f"{title}: nothing to export: {tree.metric.title} is zero")
    return tree


def _amount(tree: StackTree) -> str:
    from flame.core.units import format_counted, format_value

    stacks, metric = format_counted(int((tree.own > 0).sum()), "stack", "stacks"), tree.metric
    return f"{stacks}, {metric.title} {format_value(int(tree.own.sum()), metric.unit)}"


def _output(args: argparse.Namespace, inputs: Inputs) -> str:
    """Return where to export to; UsageError rather than lose a file that ``-o`` does not name."""
    if args.output is None:
        name = inputs.stem + SUFFIXES[args.format]
        if os.path.lexists(name):
            raise UsageError(f"{name}: is there already; {_NAME_ONE}")
        return name
    from flame.core.files.atomic import refuse_missing_folder
    from flame.core.files.packed_output import packing_problem
    from flame.core.loading.inputs import Inputs

    if args.format in BINARY:
        refuse_terminal(args.output, f"-f {args.format}")
    refuse_missing_folder(args.output)
    if args.format not in PACKED and (problem := packing_problem(args.output)):
        raise UsageError(f"-o {args.output}: {problem}")
    if inputs.hold(Path(args.output)):
        raise UsageError(f"-o {args.output}: is the trace itself")
    if Inputs(tuple(map(Path, args.ncu))).hold(Path(args.output)):
        raise UsageError(f"-o {args.output}: is what --ncu names")
    if args.phases and Inputs((Path(args.phases),)).hold(Path(args.output)):
        raise UsageError(f"-o {args.output}: is what --phases names")
    return str(args.output)
