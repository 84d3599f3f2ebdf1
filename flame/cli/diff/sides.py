"""Find, check and load the two sides that ``flame diff`` compares."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from flame.cli.arguments import inputs_at
from flame.core.errors import UsageError
from flame.options.selection import load_options_of, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flame.core.compare.sides import Run, Sides
    from flame.core.loading.inputs import Inputs
    from flame.core.model.profile import Profile
    from flame.core.projection.filters import Filter
    from flame.core.reopening.profile_cache import ProfileCache


class InputSides(NamedTuple):
    """Hold what is to be loaded: the runs of both sides, each of one or several files."""

    base: list[Inputs]
    new: list[Inputs]

    @property
    def every(self) -> list[Inputs]:
        """All runs."""
        return [*self.base, *self.new]


def sides_of(args: argparse.Namespace) -> InputSides:
    """List the runs of both sides; UsageError where these are not two."""
    if args.base or args.new:
        if args.paths or not (args.base and args.new):
            raise UsageError("name both sides by --base and --new, or both as PATH")
        return InputSides(
            [_inputs(args, one) for one in args.base], [_inputs(args, one) for one in args.new]
        )
    if len(args.paths) == 1 and (args.base_select or args.new_select):
        return InputSides([_inputs(args, args.paths)], [_inputs(args, args.paths)])
    if len(args.paths) != 2:
        raise UsageError(
            "name two traces: flame diff BASE NEW; several runs of a side by --base and --new "
            "(see flame diff --help)"
        )
    return InputSides([_inputs(args, args.paths[:1])], [_inputs(args, args.paths[1:])])


def kept_side(args: argparse.Namespace) -> list[Inputs]:
    """List the runs of the one side that is to be kept; UsageError where it is not one."""
    runs = args.base or args.new or [[path] for path in args.paths[:1]]
    if not runs or len(args.paths) + bool(args.base) + bool(args.new) > 1:
        raise UsageError("--keep-base takes one side: flame diff TRACE --keep-base FILE")
    return [_inputs(args, one) for one in runs]


def _inputs(args: argparse.Namespace, paths: Sequence[str]) -> Inputs:
    return inputs_at(paths, args)


def side_filters(args: argparse.Namespace, side: str) -> tuple[Filter, ...]:
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


def load_sides(args: argparse.Namespace, sides: InputSides, cache: ProfileCache | None) -> Sides:
    """Load all runs; a trace that is on both sides, once."""
    from flame.core.compare.sides import SIDES, Sides

    known: dict[tuple[Path, ...], Profile] = {}
    base, new = (
        load_side(args, name, side, cache, known) for name, side in zip(SIDES, sides, strict=True)
    )
    return Sides(base, new)


def load_side(
    args: argparse.Namespace,
    name: str,
    inputs: Sequence[Inputs],
    cache: ProfileCache | None,
    profiles: dict[tuple[Path, ...], Profile] | None = None,
) -> tuple[Run, ...]:
    """Load the runs of a side that ``profiles`` has not, or open the base that was kept of it."""
    from flame.console.progress import load_with_progress
    from flame.core.compare.kept.base_file import is_kept_base
    from flame.core.compare.sides import open_runs, runs_of
    from flame.core.report.options import with_given_iteration

    where, paths = side_filters(args, name.lower()), [path for one in inputs for path in one.paths]
    if len(paths) == 1 and is_kept_base(paths[0]):
        return open_runs(paths[0], name, where, load_options_of(args).phases)
    profiles, options = {} if profiles is None else profiles, load_options_of(args)
    for one in inputs:
        if one.paths not in profiles:
            # Findings and samples of kernels tell by them; several files are read elsewhere.
            wanted = args.format is None and len(one.paths) == 1
            loaded = load_with_progress(one, replace(options, launches=wanted), cache)
            profiles[one.paths] = with_given_iteration(loaded, args.iteration)
    return runs_of(name, [profiles[one.paths] for one in inputs], where)
