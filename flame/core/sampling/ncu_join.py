"""Join PC samples of Nsight Compute to the kernels of a trace, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

import numpy as np

from flame.core.columns import Bool, unique
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE
from flame.core.model.frames import FrameBuilder, Kind
from flame.core.model.metrics import STALLS
from flame.core.model.pc_samples import Code, CodeSamples, Sampling, SamplingBuilder
from flame.core.model.profile import Profile
from flame.core.readers.ncu.result import NcuFile, NcuResult, list_some_names, result_warnings
from flame.core.sampling.attach import attach_sampling, split_over_rows
from flame.core.sampling.kernel_match import KernelIndex, KernelNames
from flame.core.sampling.merge import concatenate_samplings


@dataclass(eq=False)
class _MatchedKernel:
    """Frames of the trace that are one kernel, and the results that belong to it."""

    frames: set[int] = field(default_factory=set)
    results: list[NcuResult] = field(default_factory=list)


@dataclass
class _UnmatchedResults:
    """Results of one file that match no kernel; ``unsure`` ones may be any of several."""

    missing: list[NcuResult] = field(default_factory=list)
    unsure: list[NcuResult] = field(default_factory=list)


def join_samples(profile: Profile, files: Sequence[NcuFile]) -> Profile:
    """Return ``profile`` with the samples in ``files``.

    Kernels of their names have them, all call sites together. Several results of one kernel are
    summed. What has samples already keeps those alone. Warnings tell what matched nothing.
    """
    if not files:
        return profile
    free, frames, of_frame = (
        _unsampled_groups(profile),
        _kernel_frames(profile),
        dict[int, _MatchedKernel](),
    )
    known = KernelIndex({at: profile.frames[at] for at in frames})
    warnings = list(profile.warnings)
    for file in files:
        missed = _match_results(known, file.results, of_frame)
        texts = [*_mismatch_warnings(profile, frames, file, missed), *result_warnings(file.results)]
        warnings += [*file.notes, *(f"{file.path.name}: {text}" for text in texts)]
    is_vague = {kernel: _is_vague(profile, kernel) for kernel in of_frame.values()}
    sure = [kernel for kernel, vague in is_vague.items() if not vague]
    vague = [kernel for kernel, vague in is_vague.items() if vague]
    warnings += [*_vague_warnings(vague), *_recorded_warnings(profile, sure, free)]
    return _add_samples(replace(profile, warnings=tuple(warnings)), sure, free)


def _kernel_frames(profile: Profile) -> list[int]:
    groups = profile.activities.groups
    frames = groups.frame[(groups.kind == Kind.KERNEL) & (groups.frame >= 0)]
    distinct_frames: list[int] = unique(frames).tolist()
    return distinct_frames


def _match_results(
    known: KernelIndex, results: Sequence[NcuResult], of_frame: dict[int, _MatchedKernel]
) -> _UnmatchedResults:
    """Assign ``results`` to kernels, new ones among them; return those without a kernel."""
    missed = _UnmatchedResults()
    for result in results:
        if not result.samples.total:
            continue
        match = known.match(result.name)
        if match.frames:
            _assign(of_frame, match.frames, result)
        else:
            (missed.unsure if match.unsure else missed.missing).append(result)
    return missed


def _assign(of_frame: dict[int, _MatchedKernel], frames: Sequence[int], result: NcuResult) -> None:
    """Add ``result`` to the kernel of ``frames``; kernels that turn out to be one become one."""
    known = dict.fromkeys(of_frame[at] for at in frames if at in of_frame)
    kernel, *others = known or [_MatchedKernel()]
    for other in others:
        kernel.frames |= other.frames
        kernel.results += other.results
    kernel.frames.update(frames)
    kernel.results.append(result)
    of_frame.update(dict.fromkeys(kernel.frames, kernel))


def _mismatch_warnings(
    profile: Profile, frames: Sequence[int], file: NcuFile, missed: _UnmatchedResults
) -> Iterator[str]:
    sampled = sum(result.samples.total > 0 for result in file.results)
    missing = list_some_names([result.name for result in missed.missing])
    if len(missed.missing) == sampled:
        there = list_some_names([profile.frames[at].name for at in frames]) or "none"
        yield f"none of its kernels is in the trace: it has {missing}, the trace has {there}"
    elif missing:
        yield f"kernels that are not in the trace, left out: {missing}"
    if missed.unsure:
        names = list_some_names([result.name for result in missed.unsure])
        yield (
            f"kernels that may be several or others of the trace, left out: {names}; "
            "export the page again with --print-kernel-base mangled"
        )


def _is_vague(profile: Profile, kernel: _MatchedKernel) -> bool:
    """Return whether the trace has only a base name, for results of several kernels with it."""
    names = [KernelNames.from_frame(profile.frames[at]) for at in kernel.frames]
    if any(kernel_names.full or kernel_names.mangled for kernel_names in names):
        return False
    return (
        len({KernelNames.from_text(result.name).signature for result in kernel.results} - {""}) > 1
    )


def _vague_warnings(kernels: Iterable[_MatchedKernel]) -> Iterator[str]:
    names = [kernel.results[0].name for kernel in kernels]
    if names:
        yield f"--ncu: the trace has only base names of kernels, left out: {list_some_names(names)}"


def _recorded_warnings(
    profile: Profile, kernels: Sequence[_MatchedKernel], free: Bool
) -> Iterator[str]:
    left = set(profile.activities.groups.frame[free].tolist())
    own = [kernel.results[0].name for kernel in kernels if not kernel.frames & left]
    if own:
        yield f"--ncu: kernels that have recorded samples, left as they are: {list_some_names(own)}"


def _unsampled_groups(profile: Profile) -> Bool:
    """Return the groups of activities that may have samples and have none yet."""
    groups, sampling = profile.activities.groups, profile.sampling
    free: Bool = groups.kind == Kind.KERNEL
    return free if sampling is None else free & (sampling.of_group < 0)


def _add_samples(profile: Profile, kernels: Sequence[_MatchedKernel], free: Bool) -> Profile:
    frames = FrameBuilder.from_table(profile.frames)
    builder = SamplingBuilder(frames)
    table, old = profile.activities, profile.sampling
    number = np.full(len(profile.frames) + 1, NONE)
    for at, kernel in enumerate(kernels):
        number[list(kernel.frames)] = at
    of_kernel = np.full(len(kernels) + 1, NONE, np.int32)
    own = np.where(free, number[table.groups.frame], NONE)
    for at in unique(own[own != NONE]).tolist():
        results, name = kernels[at].results, _symbol_of(profile, kernels[at])
        of_kernel[at] = builder.add(sum_samples(results, name), exact=False)
    of_group = of_kernel[own]
    if not (of_group >= 0).any():
        return profile
    new = builder.build(of_group)
    rows = split_over_rows(of_group[table.groups.of_row], new.totals, table.duration)
    if old is None:
        return attach_sampling(profile, frames, new, rows)
    return attach_sampling(
        profile, frames, _keep_old_samples(old, new), rows + table.measures[STALLS.key]
    )


def _symbol_of(profile: Profile, kernel: _MatchedKernel) -> str:
    """Return the mangled name where a frame has it."""
    known = (profile.frames[at].get("mangled") for at in sorted(kernel.frames))
    return next(filter(None, known), kernel.results[0].name)


def sum_samples(results: Sequence[NcuResult], name: str) -> list[CodeSamples]:
    """Sum the samples of ``results`` with equal code; the code is called ``name``."""
    same: dict[tuple[bytes, tuple[str, ...]], list[CodeSamples]] = {}
    for result in results:
        code = result.samples.code
        same.setdefault((code.offset.tobytes(), code.text), []).append(result.samples)
    return [_sum_equal_code(parts, _code_with_most_lines(parts, name)) for parts in same.values()]


def _code_with_most_lines(parts: Sequence[CodeSamples], name: str) -> Code:
    """Return the code of which most lines are known, called ``name``."""
    best = max((part.code for part in parts), key=lambda code: int((code.line > 0).sum()))
    return replace(best, name=name)


def _sum_equal_code(parts: Sequence[CodeSamples], code: Code) -> CodeSamples:
    reasons = tuple(dict.fromkeys(key for part in parts for key in part.reasons))
    sums = np.zeros((len(code), len(reasons)), np.int64)
    for part in parts:
        number = np.array([reasons.index(key) for key in part.reasons], np.int32)
        np.add.at(sums, (part.place, number[part.reason]), part.samples)
    place, reason = np.nonzero(sums)
    return CodeSamples(
        code, place.astype(np.int32), reason.astype(np.int32), sums[place, reason], reasons
    )


def _keep_old_samples(old: Sampling, new: Sampling) -> Sampling:
    """Concatenate both; where a group has samples in both, it keeps those of ``old``."""
    ours = np.where(new.of_group >= 0, new.of_group + np.int32(len(old)), NONE)
    of_group = np.where(old.of_group >= 0, old.of_group, ours).astype(np.int32)
    return concatenate_samplings([old, new], of_group)
