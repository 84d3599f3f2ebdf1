"""Read speedscope's own files: stacks as samples with weights, or frames opened and closed.

py-spy, rbspy, pyinstrument, dotnet-trace, speedscope itself and flame's own exporter write them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from flame.core.columns import I4
from flame.core.errors import InputError
from flame.core.load_progress import LoadPart
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.meta import Meta
from flame.core.model.raw import RawStacks
from flame.core.model.stacks import StackBuilder
from flame.core.options import LoadOptions, Progress
from flame.core.readers.shared.file_stream import FileStream
from flame.core.readers.shared.frame_text import is_instruction, parse_frame
from flame.core.readers.shared.stack_rows import Tick, build_row_stacks
from flame.core.readers.stacks.speedscope_document import ProfileColumns, SpeedscopeDocument
from flame.core.readers.stacks.speedscope_schema import EventedInput, SampledInput
from flame.core.readers.stacks.speedscope_schema import InputFrame as FileFrame
from flame.core.readers.stacks.speedscope_stacks import (
    SampleStacks,
    build_event_stacks,
    join_events,
)
from flame.core.readers.stacks.speedscope_values import (
    ProfileRows,
    join,
    merge_as_measures,
    merge_as_threads,
    parse_unit,
)

_T = TypeVar("_T")
_Result = TypeVar("_Result")
_READING = 0.8
"""Share of reading the file in the time until its stacks are there."""

_OURS = "flame@"
_KINDS: Mapping[str | None, Kind] = {kind.title: kind for kind in Kind if kind != Kind.ROOT}


def read_speedscope(path: Path, options: LoadOptions, progress: Progress) -> RawStacks:
    """Read the stacks in the speedscope file at ``path``, packed or not.

    Times of any unit become whole ns. Profiles of one kind of unit (times, bytes, plain numbers)
    are threads, those of different kinds different measures; in a file that flame wrote every
    profile is a measure of the same stacks. Frames are one where name, file and line are equal
    (for speedscope, where their index is); columns are left out. A sample without frames is the
    empty stack, so that a measure adds up to the weights; of a profile told as events only the time
    in which a frame is open counts.

    Raises InputError for what is no whole file of this format, and where weights are negative,
    frames or units unknown, events not nested or not in order.
    """
    try:
        with closing(FileStream(path, LoadPart(progress, 0, _READING), "reading")) as stream:
            document = SpeedscopeDocument(stream)
            file = document.read()
        ours = (file.exporter or "").startswith(_OURS)
        frames = FrameBuilder()
        ids = _frame_ids(document.frames, frames, ours)
        tick = partial(progress, "merging stacks", 0, 0)
        stacks, rows = _build_all_rows(file.profiles, document, ids, tick)
        table = merge_as_measures(rows) if ours else merge_as_threads(rows, file.shown)
    except InputError as error:
        raise InputError(f"{path}: speedscope file: {error}; write it again") from None
    except OSError as error:
        reason = f"cannot be read ({error.strerror or error})"
        raise InputError(f"{path}: speedscope file: {reason}; write it again") from None
    return RawStacks(
        frames=frames,
        stacks=stacks,
        stack=table.stack,
        measures=table.measures,
        meta=Meta(path=str(path), format="speedscope", producer=file.exporter or ""),
        thread=table.thread,
        start=table.start,
        threads=table.threads,
        warnings=list(table.warnings),
    )


def _build_all_rows(
    profiles: Sequence[EventedInput | SampledInput],
    document: SpeedscopeDocument,
    frames: I4,
    tick: Tick,
) -> tuple[StackBuilder, list[ProfileRows]]:
    """Build the rows of every profile, and their stacks of the frame ids in ``frames``.

    An InputError begins with the place in the file.
    """
    if not profiles:
        raise InputError("profiles: there is none")
    told = list(zip(profiles, document.profiles, strict=True))
    chosen = _apply_to_each(lambda one: _find_samples(*one, document.samples, len(frames)), told)
    stacks, ids = build_row_stacks(*document.samples.build(frames), tick)
    spelled = [(*one, ids[which]) for one, which in zip(told, chosen, strict=True)]
    chosen.clear()
    return stacks, _apply_to_each(lambda one: _build_rows(*one, frames, stacks, tick), spelled)


def _apply_to_each(work: Callable[[_T], _Result], profiles: Sequence[_T]) -> list[_Result]:
    """Apply ``work`` to each profile; its InputErrors then begin with the profile's place."""
    done = []
    for number, profile in enumerate(profiles):
        try:
            done.append(work(profile))
        except InputError as error:
            raise InputError(f"profiles[{number}].{error}") from None
    return done


def _find_samples(
    profile: EventedInput | SampledInput, columns: ProfileColumns, samples: SampleStacks, limit: int
) -> I4:
    """Find which of all ``samples`` are those of the profile; none of events."""
    if isinstance(profile, EventedInput):
        return np.zeros(0, np.int32)
    if bytes(profile.samples) != b"[]":
        raise InputError("samples: no list")
    which = join(columns.samples)
    samples.check(which, limit)
    return which


def _build_rows(
    profile: EventedInput | SampledInput,
    columns: ProfileColumns,
    stack: I4,
    frames: I4,
    stacks: StackBuilder,
    tick: Tick,
) -> ProfileRows:
    """Build the rows of a profile; ``stack`` is that of each of its samples."""
    unit, start = parse_unit(profile.unit), profile.start_value
    if isinstance(profile, EventedInput):
        events = join_events(columns.events)
        stack, lasting = build_event_stacks(events, frames, stacks, tick)
        return ProfileRows(profile.name, unit, start, stack[lasting], events.at, lasting)
    weights = join(columns.weights)
    if len(stack) != len(weights):
        raise InputError(f"weights: {len(weights):,} of them for {len(stack):,} samples")
    negative = np.flatnonzero(weights < 0)
    if len(negative):
        raise InputError(f"weights[{negative[0]}]: {weights[negative[0]]} is negative")
    return ProfileRows(profile.name, unit, start, stack, weights)


def _frame_ids(file_frames: Sequence[FileFrame], frames: FrameBuilder, ours: bool) -> I4:
    if ours:
        return np.array([frames.add(_our_frame(frame)) for frame in file_frames], np.int32)
    # The kind of a file is that of a frame which py-spy would write as text.
    files = {frame.file for frame in file_frames if frame.file}
    kinds = {file: parse_frame(f"f ({file}:1)").kind for file in files}
    return np.array([frames.add(_frame(frame, kinds)) for frame in file_frames], np.int32)


def _our_frame(frame: FileFrame) -> Frame:
    """Make the frame that flame's exporter has written: without a source file its kind is known."""
    if frame.file in _KINDS:
        return Frame(_KINDS[frame.file], frame.name)
    kind = Kind.SASS if is_instruction(frame.name) else Kind.PYTHON
    return Frame(kind, frame.name, frame.file or "", _line(frame))


def _frame(frame: FileFrame, kinds: Mapping[str, Kind]) -> Frame:
    if not frame.file:
        return parse_frame(frame.name)
    return Frame(kinds[frame.file], frame.name, frame.file, _line(frame))


def _line(frame: FileFrame) -> int:
    """Return the line of a frame, 0 where it is not known (some writers say null, others -1)."""
    return max(int(frame.line or 0), 0)
