"""Attach PC samples of a recording to their launches, or else to their kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from flame.core.columns import (
    I4,
    I8,
    Bool,
    Column,
    distinct,
    pack,
    places_in,
    rows_by_value,
    sum_by,
    unique,
    unique_rows,
)
from flame.core.model.activities import NONE
from flame.core.model.frames import Frame, Kind
from flame.core.model.pc_samples import Code, CodeSamples, SamplingBuilder
from flame.core.model.profile import Profile
from flame.core.model.raw import RawPcSamples, RawTrace
from flame.core.names.cuda import demangle, kernel_base
from flame.core.sampling.attach import attach_sampling, split_over_rows
from flame.core.units import format_counted

_LISTED = 3
_LONGEST_NAME = 60


def attach_recorded_samples(profile: Profile, raw: RawTrace) -> tuple[Profile, list[str]]:
    """Return ``profile``, made of ``raw``, with its PC samples; and warnings on the rest.

    Samples that know their launch are of it alone, unless the kernel has others in the process that
    do not: then all are of all its launches. So are those of launches that were not recorded, if no
    launch of the kernel has its own.
    """
    pc = raw.pc_samples
    if pc is None:
        return profile, []
    owners = _SampleOwners(profile, raw, pc)
    warnings = list(owners.warnings())
    if not owners.exact:
        return profile, warnings
    builder = SamplingBuilder(raw.frames)
    for parts, exact in zip(build_distributions(pc, owners.of_sample), owners.exact, strict=True):
        builder.add(parts, exact)
    sampling = builder.build(owners.of_group)
    return attach_sampling(profile, raw.frames, sampling, owners.per_row), warnings


class _SampleOwners:
    """Finds the owner of each sample: a distribution of launches or of a kernel.

    ``of_sample`` i4 and ``of_group`` i4 (groups of the activities) are distributions, -1 for none;
    ``exact`` is whether each is of its launches alone. ``per_row`` i8[activities] are samples.
    """

    def __init__(self, profile: Profile, raw: RawTrace, pc: RawPcSamples) -> None:
        self._pc = pc
        self._table, self._groups = profile.activities, profile.activities.groups
        self._correlation = raw.activities.correlation
        self._name, self._of_frame = number_names(pc.functions, profile.frames.frames)
        self._is_kernel = np.isin(self._name, self._of_frame)[pc.function]
        size = len(self._groups)
        self.of_sample: I4 = np.full(len(pc.samples), NONE, np.int32)
        self.of_group: I4 = np.full(size, NONE, np.int32)
        self.per_row: I8 = np.zeros(len(self._table), np.int64)
        self.exact: list[bool] = []
        self._nowhere = self._unlaunched = np.zeros(0, np.int64)
        self._own_by_launch()
        self._own_by_kernel()

    def _own_by_launch(self) -> None:
        pc, table = self._pc, self._table
        known = (pc.correlation > 0) & ~self._lack_launches(pc.process, self._name[pc.function])
        name = self._of_frame[table.frame]
        kernels = np.flatnonzero(self._is_launched() & ~self._lack_launches(table.process, name))
        union = _GroupUnion(len(self._groups))
        # Those of a function that is called, not launched, are of the kernel that was.
        for chosen, own in ((known & self._is_kernel, True), (known & ~self._is_kernel, False)):
            rows = np.flatnonzero(chosen)
            left: list[Column] = [pc.process[rows], pc.correlation[rows]]
            right: list[Column] = [table.process[kernels], self._correlation[kernels]]
            if own:
                left.append(self._name[pc.function[rows]])
                right.append(name[kernels])
            of_left, of_right, size = _number_common_rows(left, right)
            self.of_sample[rows] = self._share_among_kernels(
                union, rows, kernels, of_left, of_right, size
            )
        self._number_distributions(union)

    def _lack_launches(self, process: I4, name: I4) -> Bool:
        """Return which kernels, by process and name, have samples without their launch."""
        pc = self._pc
        rows = np.flatnonzero((pc.correlation <= 0) & self._is_kernel)
        others = [pc.process[rows], self._name[pc.function[rows]]]
        lacking: Bool = _number_common_rows([process, name], others)[0] != NONE
        return lacking

    def _is_launched(self) -> Bool:
        """Return which activities are kernels with a launch that samples know."""
        known: Bool = (self._table.kind == Kind.KERNEL) & (self._correlation > 0)
        return known & np.isin(self._correlation, self._pc.correlation)

    def _share_among_kernels(
        self, union: _GroupUnion, rows: I8, kernels: I8, of_left: I4, of_right: I4, size: int
    ) -> I4:
        """Give samples to kernels of their launch; return the first group of each."""
        met, group = of_left >= 0, self._groups.of_row[kernels]
        totals = sum_by(of_left[met], self._pc.samples[rows[met]], size)
        self.per_row[kernels] += split_over_rows(of_right, totals, self._table.duration[kernels])
        first = np.full(size + 1, len(self._groups))
        np.minimum.at(first, of_right, group)
        first[size] = NONE
        union.join(first[of_right], group)
        first_group: I4 = first[of_left].astype(np.int32)
        return first_group

    def _number_distributions(self, union: _GroupUnion) -> None:
        """Number the distributions: groups of one launch share one."""
        touched = np.array(sorted(union.touched), np.int64)
        roots, number = distinct(union.roots()[touched])
        self.of_group[touched] = number
        self.exact += (np.bincount(number, minlength=len(roots)) == 1).tolist()
        self.of_sample = np.append(self.of_group, np.int32(NONE))[self.of_sample]

    def _own_by_kernel(self) -> None:
        pc, groups = self._pc, self._groups
        rest = np.flatnonzero(self.of_sample == NONE)
        name = np.where(groups.kind == Kind.KERNEL, self._of_frame[groups.frame], NONE)
        left = [pc.process[rest], self._name[pc.function[rest]]]
        of_left, of_right, size = _number_common_rows(left, [groups.process, name])
        taken = np.zeros(size + 1, bool)
        taken[of_right[self.of_group != NONE]] = True
        taken[size] = False
        self._nowhere, self._unlaunched = rest[of_left == NONE], rest[taken[of_left]]
        number = np.where(taken, NONE, np.cumsum(~taken) - 1 + len(self.exact))
        number[size] = NONE
        self.of_sample[rest] = number[of_left]
        shared = number[of_right]
        self.of_group = np.where(shared != NONE, shared, self.of_group).astype(np.int32)
        self.exact += [False] * int((~taken[:size]).sum())
        self._split_by_time(shared)

    def _split_by_time(self, shared: I8) -> None:
        """Split samples of all launches by the time that these took."""
        met = self.of_sample != NONE
        totals = sum_by(self.of_sample[met], self._pc.samples[met], len(self.exact))
        of_row = shared[self._groups.of_row].astype(np.int32)
        self.per_row += split_over_rows(of_row, totals, self._table.duration)

    def warnings(self) -> Iterator[str]:
        """Yield warnings on samples without an owner."""
        pc = self._pc
        if count := int(pc.samples[self._nowhere].sum()):
            numbers = unique(pc.function[self._nowhere]).tolist()
            names = _list_names(list(dict.fromkeys(pc.functions[number] for number in numbers)))
            are = format_counted(count, "PC sample is", "PC samples are")
            yield f"{are} in functions of no recorded kernel ({names}): left out"
        if count := int(pc.samples[self._unlaunched].sum()):
            are = format_counted(count, "PC sample is", "PC samples are")
            yield f"{are} of launches that were not recorded: left out"


def number_names(functions: Sequence[str], frames: Sequence[Frame]) -> tuple[I4, I4]:
    """Number the names of ``functions``, and of the kernels among ``frames``, -1 for others."""
    names: dict[str, int] = {}
    own = [names.setdefault(name, len(names)) for name in functions]
    of_frame = [
        names.get(frame.get("mangled") or frame.get("demangled"), NONE)
        if frame.kind == Kind.KERNEL
        else NONE
        for frame in frames
    ]
    return np.array(own, np.int32), np.array(of_frame, np.int32)


def _number_common_rows(left: Sequence[Column], right: Sequence[Column]) -> tuple[I4, I4, int]:
    """Number the rows that ``left`` and ``right`` have in common; and count them.

    -1 where a row has nothing on the other side.
    """
    size = len(left[0])
    _, place = distinct(pack([np.concatenate(pair) for pair in zip(left, right, strict=True)]))
    number = np.full(int(place.max(initial=-1)) + 1, NONE, np.int32)
    counts = [np.bincount(side, minlength=len(number)) for side in (place[:size], place[size:])]
    both = np.flatnonzero(np.minimum(*counts))
    number[both] = np.arange(len(both))
    return number[place[:size]], number[place[size:]], len(both)


class _GroupUnion:
    """Groups that cannot be told apart; ``touched`` are those that have samples at all."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))
        self.touched: set[int] = set()

    def join(self, left: I8, right: I4) -> None:
        """Unite the groups of each row; rows where ``left`` is -1 are left out."""
        met = np.flatnonzero(left != NONE)
        first, _ = unique_rows([left[met], right[met]])
        pairs = zip(left[met[first]].tolist(), right[met[first]].tolist(), strict=True)
        for group, other in pairs:
            self.touched.add(other)
            self._parent[self._root(group)] = self._root(other)

    def _root(self, group: int) -> int:
        parent = self._parent
        while parent[group] != group:
            parent[group] = parent[parent[group]]
            group = parent[group]
        return group

    def roots(self) -> I8:
        """Return a representative of each group's union, i8[groups]."""
        return np.array([self._root(group) for group in self._parent], np.int64)


# What they are


def build_distributions(pc: RawPcSamples, owner: I4) -> Iterator[list[CodeSamples]]:
    """Yield the samples of every distribution, one part for each function."""
    rows = np.flatnonzero(owner != NONE)
    keys: list[Column] = [owner[rows], pc.function[rows], pc.offset[rows], pc.reason[rows]]
    first, kind = unique_rows(keys)
    samples = sum_by(kind, pc.samples[rows], len(first))
    owners, function, offset, reason = (column[first] for column in keys)
    codes = {
        number: _code_with_offsets(
            pc.codes[number], pc.functions[number], unique(offset[part_rows])
        )
        for number, part_rows in rows_by_value(function)
    }
    for _, own_rows in rows_by_value(owners):
        yield [
            CodeSamples(
                codes[number],
                np.searchsorted(codes[number].offset, offset[own_rows[part_rows]]).astype(np.int32),
                reason[own_rows[part_rows]],
                samples[own_rows[part_rows]],
                pc.reasons,
            )
            for number, part_rows in rows_by_value(function[own_rows])
        ]


def _code_with_offsets(known: Code | None, name: str, offsets: I8) -> Code:
    """Return the code of a function, extended to all ``offsets``: some may be unknown."""
    if known is None:
        return Code.unknown(name, offsets)
    found, ordered = unique(offsets), np.sort(known.offset)
    new = found[places_in(ordered, found) == places_in(ordered, found, "right")]
    if not len(new):
        return known
    more = Code.unknown(name, new)
    order = np.argsort(np.append(known.offset, more.offset), kind="stable")
    texts = (*known.text, *more.text)
    return Code(
        name,
        np.append(known.offset, more.offset)[order],
        tuple(texts[place] for place in order.tolist()),
        np.append(known.file, more.file)[order],
        np.append(known.line, more.line)[order],
        known.files,
        known.source,
    )


def _list_names(names: Sequence[str]) -> str:
    short = [kernel_base(demangle(name))[:_LONGEST_NAME] for name in names[:_LISTED]]
    return ", ".join([*short, "…"] if len(names) > _LISTED else short)
