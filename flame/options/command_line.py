"""Write the command line that shows what is shown: the exact way back through `selection`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from flame.core.names.framework import joined
from flame.core.options import LoadOptions
from flame.core.projection.filter_kinds import FILTER_KINDS
from flame.core.projection.filter_options import format_filter, kind_of
from flame.core.projection.filters import (
    Devices,
    ExpressionFilter,
    Filter,
    HideFramework,
    Include,
    MinShare,
    Pids,
    Streams,
    Tids,
    Time,
)
from flame.core.projection.named_levels import name_of
from flame.core.projection.selection import Selection
from flame.options.state import AppState, encode

_LONGEST = 100_000
"""Bytes of the place in the app: Linux takes no word of more than 128 KiB."""

_NOWHERE = encode(AppState())
_NUMBERED = Devices | Streams | Pids | Tids
_MERGED = _NUMBERED | Include | MinShare | HideFramework


def command_line(
    paths: Iterable[str | Path],
    options: LoadOptions,
    selection: Selection,
    state: AppState,
    usual_names: str = "short",
    remembers: bool = False,
) -> str:
    """Write a line for the shell that opens ``paths`` under ``selection`` at ``state``.

    Paths and options are those given here, not those in ``state``. A place whose names are too long
    for a shell is left out. ``usual_names`` are the kernel names of the user's configuration. Where
    the app ``remembers`` settings, the line names a place in any case: these do not count then.
    """
    words = ["flame", "view", *map(_path_word, paths)]
    words += options_of(options, selection, usual_names)
    return at_state(shlex.join(words), state, remembers)


def at_state(line: str, state: AppState, remembers: bool = False) -> str:
    """Add ``state`` to a ``line`` that `command_line` wrote of none."""
    place = encode(msgspec.structs.replace(state, path="", paths=[], options=[]))
    place = place if len(place) <= _LONGEST else _NOWHERE
    return f"{line} --state {shlex.quote(place)}" if place != _NOWHERE or remembers else line


def report_line(
    paths: Iterable[str | Path], options: LoadOptions, selection: Selection, section: str
) -> str:
    """Write a line for the shell that prints ``section`` of the report under ``selection``.

    What differs from `command_line` is what `flame report` takes for usual.
    """
    words = ["flame", "report", *map(_path_word, paths)]
    words += [*_loading(options), *_levels(selection)]
    words += ["--forward"] if selection.forward else []
    words += _filters(selection.where)
    if selection.naming.kernel_names != "base":
        words += ["--kernel-names", selection.naming.kernel_names]
    words += _naming(replace(selection, naming=replace(selection.naming, numbers=True)))
    words += ["--fold-numbers"] if selection.naming.numbers else []
    return shlex.join([*words, "--section", section])


def _path_word(path: str | Path) -> str:
    """Write a path that is no option; the text ``-`` is standard input, a `Path` of it a file."""
    name = str(path)
    return f"./{name}" if name.startswith("-") and path != "-" else name


def options_of(options: LoadOptions, selection: Selection, usual_names: str = "short") -> list[str]:
    """Write the words that `selection.parse` reads as ``options, selection``.

    Filters come in the order in which it makes them, several of one kind of number as what they
    have in common; ``--shapes`` is left out where the levels decide, and ``--kernel-names`` where
    they are short as nearly always, ``usual_names`` too.
    """
    words = list(_loading(options))
    words += _levels(selection)
    if not selection.forward:
        words.append("--no-forward")
    if selection.metric:
        words += ["--metric", selection.metric]
    words += _filters(selection.where)
    if {selection.naming.kernel_names, usual_names} != {"short"}:
        words += ["--kernel-names", selection.naming.kernel_names]
    words += _naming(selection)
    layout = selection.layout
    words += ["--invert"] * layout.inverted
    words += ["--collapse-recursion"] * layout.collapsed
    if layout.order != "weight":
        words += ["--sort", layout.order]
    if selection.colours != "level":
        words += ["--colours", selection.colours]
    return words


def _loading(options: LoadOptions) -> Iterator[str]:
    if options.nvtx_names != "clean":
        yield from ("--nvtx-names", options.nvtx_names)
    if options.nvtx_start_end:
        yield "--nvtx-start-end"
    for path in options.ncu:
        yield from _path_option("--ncu", path)
    if options.phases is not None:
        yield from _path_option("--phases", options.phases)
    for name in ("peak", "dtype", "model_flops"):
        if (value := getattr(options, name)) is not None:
            yield from _option(f"--{name.replace('_', '-')}", value)


def _levels(selection: Selection) -> Iterator[str]:
    if selection.levels is None:
        return
    if (name := name_of(selection.levels, selection.naming.fold)) is not None:
        yield from ("--arrange", name)
    else:
        yield from ("--levels", ",".join(selection.levels))


def _naming(selection: Selection) -> Iterator[str]:
    naming, levels = selection.naming, selection.levels
    if naming.shapes and (levels is None or "shapes" in levels):
        yield "--shapes"
    for rule in naming.rename:
        yield from _option("--rename", f"{rule.pattern.pattern}={rule.replacement}")
    if naming.fold and (levels is None or name_of(levels, naming.fold) is None):
        yield "--fold-layers"
    if not naming.numbers:
        yield "--no-fold-numbers"


def _filters(filters: Iterable[Filter]) -> Iterator[str]:
    """Options for ``filters``, in the order in which `parse_filters` makes filters."""
    merged = _merged(filters)
    for kind in FILTER_KINDS:
        for filter_ in merged:
            if kind_of(type(filter_)) is not kind:
                continue
            if filter_ == HideFramework():
                yield kind.option
            elif isinstance(filter_, HideFramework):
                yield from _option(filter_.option, _text_of(filter_))
            else:
                yield from _option(kind.option, _text_of(filter_))


def _merged(where: Iterable[Filter]) -> list[Filter]:
    """Filters of which only the last would count, or all together, as one that does the same."""
    merged: dict[object, Filter] = {}
    for filter_ in where:
        key = type(filter_) if isinstance(filter_, _MERGED) else filter_
        known = merged.get(key)
        merged[key] = filter_ if known is None else _both(known, filter_)
    return [filter_ for filter_ in merged.values() if filter_ != Time()]


def _both(first: Filter, other: Filter) -> Filter:
    if isinstance(first, MinShare) and isinstance(other, MinShare):
        return max(first, other, key=lambda share: share.percent)
    if isinstance(first, Include) and isinstance(other, Include):
        return Include(tuple(kind for kind in first.kinds if kind in other.kinds))
    if isinstance(first, HideFramework) and isinstance(other, HideFramework):
        return HideFramework(joined((first.pattern, other.pattern)))
    if isinstance(first, _NUMBERED) and isinstance(other, _NUMBERED):
        return replace(first, ids=tuple(number for number in first.ids if number in other.ids))
    return first


def _text_of(filter_: Filter) -> str:
    """The value of the option that makes ``filter_``."""
    text = format_filter(filter_)
    # argparse before Python 3.13 loses a value of two dashes.
    return "-[-]" if text == "--" and isinstance(filter_, ExpressionFilter) else text


def _path_option(name: str, path: str) -> list[str]:
    # argparse before Python 3.13 loses a value of two dashes.
    return _option(name, "./--" if path == "--" else path)


def _option(name: str, text: str) -> list[str]:
    """An option and its value, bound together where that looks like an option itself."""
    return [f"{name}={text}"] if text.startswith("-") else [name, text]
