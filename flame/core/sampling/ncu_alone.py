"""Make a profile of a file of Nsight Compute alone: its kernels, weighed by their PC samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from flame.core.columns import I4, I8
from flame.core.model.activities import Activities, off_gpu_columns
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.grouping import add_grouping
from flame.core.model.meta import GraphNodes, Meta, Source
from flame.core.model.metrics import STALLS
from flame.core.model.pc_samples import SamplingBuilder
from flame.core.model.profile import Profile
from flame.core.model.stacks import StackBuilder
from flame.core.names.cuda import demangle
from flame.core.readers.ncu.result import NcuFile, NcuResult, result_warnings
from flame.core.sampling.attach import attach_sampling
from flame.core.sampling.ncu_join import sum_samples

_METRIC = replace(STALLS, levels=("kernel",), noun="profiled launches")


def build_ncu_profile(file: NcuFile) -> Profile:
    """Build the profile of ``file``: a row per result, without times, weighed by PC samples."""
    frames = FrameBuilder()
    frame = np.array([frames.add(_kernel_frame(result)) for result in file.results], np.int32)
    profile = _build_unsampled(file, frames, frame)
    builder = SamplingBuilder(frames)
    groups = profile.activities.groups
    of_group = np.full(len(groups), -1, np.int32)
    results = _group_by_frame(file.results, frame)
    for at, kernel in enumerate(groups.frame.tolist()):
        own = results[kernel]
        if any(result.samples.total for result in own):
            of_group[at] = builder.add(sum_samples(own, own[0].name), exact=True)
    samples: I8 = np.array([result.samples.total for result in file.results], np.int64)
    return attach_sampling(profile, frames, builder.build(of_group), samples)


def _group_by_frame(results: Sequence[NcuResult], frame: I4) -> dict[int, list[NcuResult]]:
    by_frame: dict[int, list[NcuResult]] = {}
    for result, kernel in zip(results, frame.tolist(), strict=True):
        by_frame.setdefault(kernel, []).append(result)
    return by_frame


def _kernel_frame(result: NcuResult) -> Frame:
    full = demangle(result.name)
    names = (("demangled", full), ("mangled", result.name if full != result.name else ""))
    return Frame(Kind.KERNEL, result.base, extra=tuple(pair for pair in names if pair[1]))


def _build_unsampled(file: NcuFile, frames: FrameBuilder, frame: I4) -> Profile:
    meta = Meta(str(file.path), "ncu", producer="Nsight Compute")
    sources = (Source("", meta),)
    streams: I4 = np.zeros(0, np.int32)
    grouping = add_grouping(frames, (), (), (), streams, sources)
    table = _build_table(frame)
    return Profile(
        frames=frames.build(),
        activities=table,
        processes=(),
        threads=(),
        devices=(),
        grouping=grouping,
        meta=meta,
        begin=0,
        end=0,
        graph_nodes=GraphNodes(),
        warnings=(*file.notes, *result_warnings(file.results)),
        host_builder=partial(_return_table, table),
        sources=sources,
        own_metrics=(_METRIC,),
        timed=False,
    )


def _build_table(frame: I4) -> Activities:
    size = len(frame)
    no_time: I8 = np.zeros(size, np.int64)
    known = {
        "kind": np.full(size, Kind.KERNEL, np.uint8),
        "start": no_time,
        "duration": no_time,
        "frame": frame,
    }
    return Activities(**off_gpu_columns(size) | known, stacks=StackBuilder().build())


def _return_table(table: Activities) -> Activities:
    return table
