"""Tell which phase activities are of: by a user's file, by ranges, else by what they compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from flame.core.columns import I4, I8, Bool, unique
from flame.core.frame import ACTIVITY_KINDS, CODE_KINDS
from flame.core.model.activities import Activities
from flame.core.model.frames import Frame, FrameBuilder, FrameTable, Kind
from flame.core.model.meta import NamedPhases
from flame.core.model.profile import Profile
from flame.core.names.phases import TOLD_BY_RANGES, UNMAPPED, Phase, told_phase, worded_phase
from flame.core.projection.labels import Naming, exact_labels
from flame.core.projection.matching import groups_with, matching_frames

_ON_PATHS = (*CODE_KINDS, Kind.LAUNCH, Kind.NVTX, *ACTIVITY_KINDS)

_KEPT: WeakKeyDictionary[FrameTable, tuple[Bool, ...]] = WeakKeyDictionary()


def name_phases(profile: Profile, rules: Sequence[Phase]) -> Profile:
    """Make the same profile with the phases that ``rules`` name, and frames that stand for them."""
    frames = FrameBuilder.from_table(profile.frames)
    names = (*(rule.name for rule in rules), UNMAPPED)
    ids = np.array([frames.add(Frame(Kind.PHASE, name)) for name in names], np.int32)
    grouping = profile.grouping.padded(len(frames))
    phases = NamedPhases(tuple(rules), ids)
    return replace(profile, frames=frames.build(), grouping=grouping, phases=phases)


def tell_phases(profile: Profile) -> Profile:
    """Make the same profile with the phases that names of ranges tell; itself where none does.

    Those that a user has named stay.
    """
    return profile if profile.phases is not None or profile.resolved else tell_own_phases(profile)


def tell_own_phases(profile: Profile) -> Profile:
    """Make the same profile with the phases that ranges tell, also of a kept base; or itself."""
    told = _told_by_ranges(profile.frames)
    if not told:
        return profile
    names = [name for name in TOLD_BY_RANGES if name in told.values()]
    frames = FrameBuilder.from_table(profile.frames)
    ids = np.array([frames.add(Frame(Kind.PHASE, name)) for name in (*names, UNMAPPED)], np.int32)
    of_frame = np.full(len(frames), -1, np.int32)
    for frame, name in told.items():
        of_frame[frame] = names.index(name)
    grouping = profile.grouping.padded(len(frames))
    phases = NamedPhases((), ids, of_frame)
    return replace(profile, frames=frames.build(), grouping=grouping, phases=phases)


def _told_by_ranges(frames: FrameTable) -> dict[int, str]:
    """The phases that ranges tell, by frame."""
    told, worded = dict[int, str](), dict[int, str]()
    for at in np.flatnonzero(frames.kind == Kind.NVTX).tolist():
        frame = frames[at]
        if phase := told_phase(frame.name, frame.get("detail")):
            told[at] = phase
        elif phase := worded_phase(frame.name):
            worded[at] = phase
    return told | worded if len({*told.values(), *worded.values()}) > 1 else told


def phase_frames(profile: Profile, table: Activities) -> I4:
    """Find the frame of the phase of each group of ``table``, i4[groups]; -1: of none.

    Where nothing names phases they are the categories of what ran on a GPU.
    """
    if profile.phases is None:
        return np.append(profile.grouping.category, np.int32(-1))[table.groups.frame]
    return profile.phases.frames[phase_of_groups(profile, table)]


def phase_names(profile: Profile) -> tuple[str, ...]:
    """List the phases that work on GPUs may be of, by name."""
    table = profile.activities
    found = profile.phases.frames if profile.phases else phase_frames(profile, table)
    names = (profile.frames[frame].name for frame in unique(found[found >= 0]).tolist())
    return tuple(names)


def phase_of_groups(profile: Profile, table: Activities) -> I8:
    """Find which of the phases each group of ``table`` is of, i8[groups].

    Of those that ranges tell it is that of the innermost range that does. Of those that a user has
    named it is the first of which any pattern matches any frame on the path, kernels by their short
    or their base name, all others as they were recorded. What is of none has the number behind the
    last one. Raises UsageError where an expression takes too long.
    """
    phases = profile.phases
    if phases is not None and phases.told is not None:
        found = table.stacks.innermost(phases.told)[table.groups.nvtx].astype(np.int64)
        return np.where(found < 0, len(phases.frames) - 1, found)
    marks = phase_marks(profile)
    phase = np.full(len(table.groups), len(marks))
    for place in reversed(range(len(marks))):
        phase[groups_with(table, marks[place])] = place
    return phase


def phase_marks(profile: Profile) -> tuple[Bool, ...]:
    """Mark the frames that each of the named phases matches, bool[frames] each.

    Worked out once per table.
    """
    frames, rules = profile.frames, profile.phases.rules if profile.phases else ()
    if frames not in _KEPT:
        _KEPT[frames] = tuple(_matched(frames, rule) for rule in rules)
    return _KEPT[frames]


def _matched(frames: FrameTable, phase: Phase) -> Bool:
    text = exact_labels(frames, Naming("short")).text
    marks = np.zeros(len(frames), bool)
    for pattern in phase.patterns:
        kinds = _ON_PATHS if pattern.kind is None else (pattern.kind,)
        ids = np.flatnonzero(np.isin(frames.kind, kinds))
        marks[matching_frames(frames, text, ids, pattern.expression)] = True
    return marks
