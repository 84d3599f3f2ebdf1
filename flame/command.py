"""The command line that shows what is shown: the exact way back through `flame.arguments`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from flame.core.labels import Naming
from flame.core.options import LoadOptions
from flame.core.selection import Selection
from flame.core.where import (
    Devices,
    Filter,
    HideFrames,
    HideStacks,
    Include,
    Kernel,
    MinShare,
    NvtxRange,
    Pids,
    ShowFrom,
    ShowStacks,
    Streams,
    Tids,
    Time,
)
from flame.state import State, encode

_LONGEST = 100_000
"""Bytes of the place in the app: Linux takes no word of more than 128 KiB."""

_NUMBERED = {Devices: "--device", Streams: "--stream", Pids: "--pid", Tids: "--tid"}


def command_line(path: str | Path, options: LoadOptions, selection: Selection, state: State) -> str:
    """A line for the shell that opens ``path`` under ``selection`` at the place of ``state``.

    Path and options are those given here, not those in ``state``. A place whose names are too long
    for a shell is left out.
    """
    name = str(path)
    words = ["flame", "view", f"./{name}" if name.startswith("-") else name]
    words += options_of(options, selection)
    place = encode(msgspec.structs.replace(state, path="", options=[]))
    if place != encode(State()) and len(place) <= _LONGEST:
        words += ["--state", place]
    return shlex.join(words)


def options_of(options: LoadOptions, selection: Selection) -> list[str]:
    """Words of the command line that `flame.arguments.parse` reads as ``options, selection``.

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
    """Options for ``where``, in the order in which `flame.core.where.where` makes filters."""
    texts = _choices(where)
    for one in where:
        if isinstance(one, Time) and one != Time():
            texts["--time"].append(f"{_time(one.begin)}/{_time(one.end)}")
        elif isinstance(one, NvtxRange):
            texts["--nvtx-range"].append(_range(one))
        elif isinstance(one, Kernel | StackFilter):
            texts[one.option].append(one.pattern)
    shares = [one.percent for one in where if isinstance(one, MinShare)]
    if shares:
        texts["--min-percent"].append(repr(max(shares)).removesuffix(".0"))
    for option, found in texts.items():
        for text in found:
            yield from _option(option, text)


def _choices(where: Iterable[Filter]) -> dict[str, list[str]]:
    """All options of filters, and the texts of those that choose from a list: what they share."""
    texts: dict[str, list[str]] = {option: [] for option in _FILTERS}
    for kind, option in _NUMBERED.items():
        ids = _common([one.ids for one in where if isinstance(one, kind)])
        texts[option] = [",".join(map(str, one)) for one in ids]
    kinds = _common([one.kinds for one in where if isinstance(one, Include)])
    texts["--include"] = [",".join(kind.title for kind in one) for one in kinds]
    return texts


def _common(choices: Sequence[tuple[T, ...]]) -> list[tuple[T, ...]]:
    """What all of ``choices`` hold, in the order of the first; nothing where there is none."""
    return [tuple(one for one in choices[0] if all(one in more for more in choices))][: len(choices)]


def _time(moment: int | None) -> str:
    return "" if moment is None else f"{moment}ns"


def _range(one: NvtxRange) -> str:
    name = re.sub(r"(\\*)@", r"\1\1\\@", one.name)
    if one.domain is None:
        return name
    return f"{re.sub(r'(\\*)$', r'\1\1', name)}@{one.domain}"


def _option(name: str, text: str) -> list[str]:
    """An option and its value, bound together where that looks like an option itself."""
    return [f"{name}={text}"] if text.startswith("-") else [name, text]
