"""Write the command line that shows a comparison as it is shown."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import msgspec

from flame.core.compare.basis import Per, Units
from flame.core.compare.changes import USUAL_LIMITS
from flame.core.options import LoadOptions
from flame.options.command_line import options_of
from flame.options.config import Config
from flame.options.state import AppState, encode
from flame.tui.diff.selection import DiffSelection
from flame.tui.diff.session import DiffProjection

_LONGEST = 100_000
"""Bytes of the place in the app: Linux takes no word of more than 128 KiB."""


def diff_line(
    words: Sequence[str],
    options: LoadOptions,
    shown: DiffProjection,
    state: AppState,
    config: Config,
) -> str:
    """Write a line for the shell that compares what ``words`` name, and shows the same."""
    chosen = shown.chosen
    line = ["flame", "diff", *words, *options_of(options, chosen.common, config.kernel_names)]
    line += _drawn(chosen)
    place = encode(msgspec.structs.replace(state, path="", paths=[], options=[]))
    if place != encode(AppState()) and len(place) <= _LONGEST:
        line += ["--state", place]
    return shlex.join(line)


def _drawn(chosen: DiffSelection) -> Iterator[str]:
    """What is said of a comparison besides its sides, of which layers are usually folded."""
    if not chosen.naming.fold:
        yield "--no-fold-layers"
    if chosen.per:
        yield from ("--per", per_text(chosen.per))
    if chosen.width != DiffSelection.width:
        yield from ("--widths", chosen.width)
    if chosen.measured != DiffSelection.measured:
        yield from ("--colour-by", chosen.measured)
    if chosen.all_changes:
        yield "--all-changes"
    if chosen.limits != USUAL_LIMITS:
        yield f"--min-change={','.join(f'{100 * share:g}%' for share in chosen.limits)}"
    if chosen.timeline != DiffSelection.timeline:
        yield from ("--timeline", chosen.timeline)


def per_text(per: Per) -> str:
    """Write ``per`` as ``--per`` is given it."""
    return ",".join(map(repr, per)) if isinstance(per, Units) else per
