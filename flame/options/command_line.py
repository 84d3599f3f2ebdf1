"""Write the command line that shows what is shown: the exact way back through `selection`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from flame.core.options import LoadOptions
from flame.core.projection.filter_options import format_nvtx_range, format_window
from flame.core.projection.filters import (
    Devices,
    Filter,
    Include,
    MinShare,
    NvtxRange,
    Pids,
    Ranks,
    Step,
    Streams,
    Tids,
    Time,
)
from flame.core.projection.labels import Naming
from flame.core.projection.selection import Selection
from flame.options.state import AppState, encode

_LONGEST = 100_000
"""Bytes of the place in the app: Linux takes no word of more than 128 KiB."""

_NUMBERED = Devices | Streams | Pids | Tids
_NUMBERS = {Devices: "--device", Streams: "--stream", Pids: "--pid", Tids: "--tid"}
_FILTERS = ("--time", "--step", "--rank", "--nvtx-range", *_NUMBERS.values())
_FILTERS += ("--kernel", "--include")
_FILTERS += ("--show-stacks", "--hide-stacks", "--show-from", "--hide-frames", "--min-percent")


def command_line(
    paths: Iterable[str | Path], options: LoadOptions, selection: Selection, state: AppState
) -> str:
    """Write a line for the shell that opens ``paths`` under ``selection`` at ``state``.

    Paths and options are those given here, not those in ``state``. A place whose names are too long
    for a shell is left out.
    """
    names = map(str, paths)
    words = ["flame", "view", *(f"./{name}" if name.startswith("-") else name for name in names)]
    words += options_of(options, selection)
    place = encode(msgspec.structs.replace(state, path="", paths=[], options=[]))
    if place != encode(AppState()) and len(place) <= _LONGEST:
        words += ["--state", place]
    return shlex.join(words)


def options_of(options: LoadOptions, selection: Selection) -> list[str]:
    """Write the words that `selection.parse` reads as ``options, selection``.

    Filters come in the order in which it makes them, several of one kind of number as what they
    have in common; ``--shapes`` is left out where the levels decide.
    """
    words = list(_loading(options))
    if selection.levels:
        words += ["--levels", ",".join(selection.levels)]
    if selection.metric:
        words += ["--metric", selection.metric]
    words += _filters(selection.where)
    words += _naming(selection.naming, selection.levels)
    arrangement = selection.arrangement
    words += ["--invert"] * arrangement.inverted
    words += ["--collapse-recursion"] * arrangement.collapsed
    if arrangement.order != "weight":
        words += ["--sort", arrangement.order]
    return words


def _loading(options: LoadOptions) -> Iterator[str]:
    if options.nvtx_names != "clean":
        yield from ("--nvtx-names", options.nvtx_names)
    if options.nvtx_start_end:
        yield "--nvtx-start-end"
    if options.forward:
        yield "--forward"
    for path in options.ncu:
        # argparse before Python 3.13 loses a value of two dashes.
        yield from _option("--ncu", "./--" if path == "--" else path)


def _naming(naming: Naming, levels: Sequence[str] | None) -> Iterator[str]:
    if naming.kernel_names != "base":
        yield from ("--kernel-names", naming.kernel_names)
    if naming.shapes and (levels is None or "shapes" in levels):
        yield "--shapes"
    for rule in naming.rename:
        yield from _option("--rename", f"{rule.pattern.pattern}={rule.replacement}")
    if naming.fold:
        yield "--fold-layers"


def _filters(where: Iterable[Filter]) -> Iterator[str]:
    """Options for ``where``, in the order in which `filters.where` makes filters."""
    texts: dict[str, list[str]] = {option: [] for option in _FILTERS}
    for filter_ in _merged(where):
        option, text = _option_of(filter_)
        texts[option].append(text)
    for option, values in texts.items():
        for text in values:
            yield from _option(option, text)


def _merged(where: Iterable[Filter]) -> list[Filter]:
    """Filters of which only the last would count, or all together, as one that does the same."""
    merged: dict[object, Filter] = {}
    for filter_ in where:
        key = type(filter_) if isinstance(filter_, _NUMBERED | Include | MinShare) else filter_
        known = merged.get(key)
        merged[key] = filter_ if known is None else _both(known, filter_)
    return [filter_ for filter_ in merged.values() if filter_ != Time()]


def _both(first: Filter, other: Filter) -> Filter:
    if isinstance(first, MinShare) and isinstance(other, MinShare):
        return max(first, other, key=lambda share: share.percent)
    if isinstance(first, Include) and isinstance(other, Include):
        return Include(tuple(kind for kind in first.kinds if kind in other.kinds))
    if isinstance(first, _NUMBERED) and isinstance(other, _NUMBERED):
        return replace(first, ids=tuple(number for number in first.ids if number in other.ids))
    return first


def _option_of(filter_: Filter) -> tuple[str, str]:
    """The option that makes ``filter_``, and its value."""
    match filter_:
        case Time():
            return "--time", format_window(filter_)
        case Step():
            first, last = filter_.first, filter_.last
            return "--step", str(first) if first == last else f"{first}-{last}"
        case Ranks():
            return "--rank", ",".join(filter_.names)
        case NvtxRange():
            return "--nvtx-range", format_nvtx_range(filter_)
        case Include():
            return "--include", ",".join(kind.title for kind in filter_.kinds)
        case MinShare():
            return "--min-percent", repr(filter_.percent).removesuffix(".0")
        case Devices() | Streams() | Pids() | Tids():
            return _NUMBERS[type(filter_)], ",".join(map(str, filter_.ids))
        case _:
            # argparse before Python 3.13 loses a value of two dashes.
            return filter_.option, "-[-]" if filter_.pattern == "--" else filter_.pattern


def _option(name: str, text: str) -> list[str]:
    """An option and its value, bound together where that looks like an option itself."""
    return [f"{name}={text}"] if text.startswith("-") else [name, text]
