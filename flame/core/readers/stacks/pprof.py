"""Read pprof profiles (profile.proto), packed or not: of Go, gperftools, async-profiler, parca."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from flame.core.columns import I4, I8
from flame.core.errors import InputError
from flame.core.load_progress import LoadPart
from flame.core.memory import MemoryShortError, within_memory
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.meta import Meta
from flame.core.model.raw import RawStacks
from flame.core.options import LoadOptions, Progress, silent
from flame.core.readers.shared.frame_text import NO_NAME, parse_frame
from flame.core.readers.shared.packed_files import PackedError, read_whole
from flame.core.readers.shared.stack_rows import DEEPEST, build_row_stacks
from flame.core.readers.stacks.pprof_profile import Location, PprofProfile, decode_profile
from flame.core.readers.stacks.speedscope_values import (
    PLAIN,
    ProfileRows,
    SpeedscopeUnit,
    merge_as_measures,
    parse_unit,
)

_READING, _DECODING = 0.2, 0.8
_FREE_FRAMES, _FRAMES_PER_BYTE = 1_000_000, 16
"""Frames of all samples that any file may have, and those for each of its bytes as it is packed:
one location may stand for many inlined functions, and packing takes out what is repeated, but not
so much that it fills the memory."""

_PER_FRAME = 60
"""Bytes of memory that a frame of a sample takes until the stacks are merged."""

_MOST = 1 << 62
_OURS = "flame "
_KINDS = {kind.title: kind for kind in Kind if kind != Kind.ROOT}
"""What flame's exporter writes as the file of frames that have none, where it has written it."""

_NOT_THERE = "[not in the file]"
_TIMES = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}


def read_pprof(path: Path, options: LoadOptions, progress: Progress) -> RawStacks:
    """Read the stacks in the profile at ``path``, the kind of value that is its default first.

    Inlined functions are frames of their own, places without a function are called by their file
    and address there. Labels of samples are left out, and a warning says so. Raises InputError
    where the file is damaged or cut off, has no samples, or negative ones (a difference).
    """
    try:
        data = read_whole(path, LoadPart(progress, 0, _READING))
        part = LoadPart(progress, _READING, _DECODING)
        profile = decode_profile(data, lambda done: part("reading samples", done, len(data)))
        return _build(path, profile, progress)
    except MemoryShortError:
        raise
    except InputError as error:
        raise InputError(f"{path}: pprof profile: {error}") from None
    except PackedError as error:
        raise InputError(f"{path}: damaged: {error}; compress or copy it again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def _build(path: Path, profile: PprofProfile, progress: Progress) -> RawStacks:
    locations, depths, values, widths = profile.build_samples()
    if not profile.types or not len(depths):
        raise InputError("it has no samples")
    if (widths != len(profile.types)).any():
        raise InputError(f"damaged: a sample without {len(profile.types)} values")
    frames = FrameBuilder()
    rows, lengths = _spell(profile, frames, locations, depths, path)
    stacks, stack = build_row_stacks(rows, lengths, partial(progress, "merging stacks", 0, 0))
    columns = values.reshape(-1, len(profile.types))
    table = merge_as_measures([_rows(profile, at, stack, columns) for at in _order(profile)])
    labels = ["labels of samples are not shown"] if profile.labels else []
    return RawStacks(
        frames=frames,
        stacks=stacks,
        stack=table.stack,
        measures=table.measures,
        meta=Meta(str(path), "pprof"),
        warnings=[*table.warnings, *labels],
    )


def _order(profile: PprofProfile) -> list[int]:
    """Kinds of values: the one that is shown by default first, which is else the last."""
    places = list(range(len(profile.types)))
    named = [at for at in places if profile.types[at][0] == profile.default_type != 0]
    first = named[0] if named else places[-1]
    return sorted(places, key=lambda at: at != first)


def _rows(profile: PprofProfile, at: int, stack: I4, columns: I8) -> ProfileRows:
    title, unit = (profile.text(number) for number in profile.types[at])
    values = np.ascontiguousarray(columns[:, at])
    if (values < 0).any():
        raise InputError("some values are negative: it is a difference, and no profile")
    known = _unit(unit)
    if float(values.sum(dtype=np.float64)) * 10.0**known.scale >= _MOST:
        raise InputError("its values add up to more than 64 bits hold")
    told = known.quantity != PLAIN or unit in ("", "count")
    return ProfileRows(title if told else f"{title} ({unit})", known, 0, stack, values)


def _unit(name: str) -> SpeedscopeUnit:
    spelled = _TIMES.get(name, name)
    return parse_unit(spelled if spelled in (*_TIMES.values(), "bytes") else "none")


def _spell(
    profile: PprofProfile, frames: FrameBuilder, locations: I8, depths: I8, path: Path
) -> tuple[I4, I8]:
    """Spell samples as frame ids, the outermost first; return these, and how many each has."""
    ids = np.array(sorted(map(int, profile.locations)), np.int64)
    spelled = [_frames_of(profile, profile.locations[str(one)]) for one in ids]
    spelled.append([Frame(Kind.FRAME, _NOT_THERE)])
    counts = np.array([len(one) for one in spelled], np.int64)
    begins = np.cumsum(counts) - counts
    all_frames = np.array([frames.add(frame) for one in spelled for frame in one], np.int32)
    places = np.searchsorted(ids, locations)
    known = places < len(ids)
    known[known] = ids[places[known]] == locations[known]
    places[~known] = len(ids)
    places = places[_reversed_rows(depths)]
    taken = np.concatenate([[0], np.cumsum(counts[places])])
    ends = np.concatenate([[0], np.cumsum(depths)])
    lengths: I8 = np.diff(taken[ends])
    _refuse_excess(lengths, path)
    within = np.arange(taken[-1]) - np.repeat(taken[:-1], counts[places])
    return all_frames[np.repeat(begins[places], counts[places]) + within], lengths


def _refuse_excess(lengths: I8, path: Path) -> None:
    if lengths.max(initial=0) > DEEPEST:
        raise InputError(f"a stack of more than {DEEPEST:,} frames")
    frames = int(lengths.sum())
    if frames > _FREE_FRAMES + _FRAMES_PER_BYTE * path.stat().st_size:
        raise InputError("its samples have more frames than a file of its size can mean")
    within_memory(path, _PER_FRAME * frames, silent)


def _reversed_rows(lengths: I8) -> I8:
    """Places that turn rows around, each of them by itself."""
    ends = np.cumsum(lengths)
    starts = ends - lengths
    turned: I8 = np.repeat(starts + ends - 1, lengths) - np.arange(int(lengths.sum()))
    return turned


def _frames_of(profile: PprofProfile, location: Location) -> list[Frame]:
    """The frames of a place, the outermost first; its address where no function is known."""
    if not location.lines:
        return [_address(profile, location)]
    return [_frame(profile, *line) for line in reversed(location.lines)]


def _frame(profile: PprofProfile, function: int, line: int) -> Frame:
    known = profile.functions.get(str(function))
    if known is None:
        return Frame(Kind.FRAME, _NOT_THERE)
    name, file = profile.text(known.name) or NO_NAME, profile.text(known.file)
    if file in _KINDS and profile.text(profile.comment).startswith(_OURS):
        return Frame(_KINDS[file], name)
    if not file:
        return parse_frame(name)
    return Frame(parse_frame(f"f ({file}:1)").kind, name, file, max(line, 0) & 0x7FFFFFFF)


def _address(profile: PprofProfile, location: Location) -> Frame:
    mapping = profile.mappings.get(str(location.mapping))
    if mapping is None:
        return Frame(Kind.NATIVE, f"0x{location.address & (1 << 64) - 1:x}")
    module = profile.text(mapping.file)
    place = location.address - mapping.start + mapping.offset & (1 << 64) - 1
    name = f"{module.rpartition('/')[2] or NO_NAME}+0x{place:x}"
    return Frame(Kind.NATIVE, name, extra=(("module", module),) if module else ())
