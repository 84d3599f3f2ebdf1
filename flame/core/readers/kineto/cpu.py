"""Collect what threads did: runtime calls, Python functions, operators and annotations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I4, I8
from flame.core.model.meta import ProfilerSteps
from flame.core.model.raw import RawCalls, RawOperators, RawPythonCalls, RawRanges, TableBuilder
from flame.core.model.stacks import EMPTY
from flame.core.readers.kineto.collectives import ToldCollectives
from flame.core.readers.kineto.context import NO_ARGS, AnyEvent, KinetoContext, fill_absent
from flame.core.readers.kineto.forward import SequenceNumbers
from flame.core.readers.kineto.vocabulary import STEP, FrameIds, call_frame, python_frame

_STEP_COLUMNS = ("number", "process", "start", "end", "thread")
_MAX_FRAMES = 500  # of one call stack


class RuntimeCalls:
    """Collects calls of the CUDA (HIP, XPU, …) runtime and driver."""

    def __init__(self, context: KinetoContext) -> None:
        self._context = context
        self._rows = TableBuilder(RawCalls)
        self._frames = FrameIds(context.frames, call_frame)

    def add(self, events: Sequence[AnyEvent]) -> None:
        """Add calls."""
        whole, start, end = self._context.select_timed("API calls", events)
        none = np.zeros(len(whole), np.int32)
        self._rows.add(
            start=start,
            end=end,
            thread=self._context.thread_numbers(whole),
            correlation=fill_absent([(event.args or NO_ARGS).correlation for event in whole], 0),
            frame=self._frames.of([event.name for event in whole]),
            python=none,
            native=none,
            chain_only=none.astype(bool),
        )

    def build(self) -> RawCalls:
        """Build the table of all calls."""
        return self._rows.build()


class PythonCalls:
    """Collects calls of Python functions."""

    def __init__(self, context: KinetoContext) -> None:
        self._context = context
        self._rows = TableBuilder(RawPythonCalls)
        self._frames = FrameIds(context.frames, python_frame)

    def add(self, events: Sequence[AnyEvent]) -> None:
        """Add calls."""
        whole, start, end = self._context.select_timed("Python calls", events)
        args = [event.args or NO_ARGS for event in whole]
        self._rows.add(
            start=start,
            end=end,
            thread=self._context.thread_numbers(whole),
            frame=self._frames.of([event.name for event in whole]),
            call=fill_absent([event_args.call for event_args in args], 0),
            caller=fill_absent([event_args.caller for event_args in args], 0),
        )

    def build(self) -> RawPythonCalls:
        """Build the table of all calls."""
        return self._rows.build()


class OperatorRanges:
    """Collects operators and annotations: steps and calls of ``collectives`` among them."""

    def __init__(self, context: KinetoContext, collectives: ToldCollectives) -> None:
        self.sequences = SequenceNumbers()
        self._context = context
        self._collectives = collectives
        self._rows = TableBuilder(RawRanges)
        self._steps: dict[tuple[int, int], tuple[int, int]] = {}
        self._call_stacks: dict[str, int] = {"": 0}
        self._stack: list[I4] = [np.zeros(0, np.int32)]

    def add(self, events: Sequence[AnyEvent]) -> None:
        """Add operators and annotations."""
        whole, start, end = self._context.select_timed("operators", events)
        args = [event.args or NO_ARGS for event in whole]
        thread = self._context.thread_numbers(whole)
        frame = self._context.range_frames(whole, args)
        self._rows.add(start=start, end=end, thread=thread, frame=frame)
        self._add_call_stacks([event_args.call_stack for event_args in args])
        if self._context.options.forward:
            self.sequences.add(args)
        self._collectives.add_calls(whole, args, thread, start, end)
        self._add_steps(whole, frame, start, end, thread)

    def _add_call_stacks(self, texts: Sequence[str | None]) -> None:
        if not any(texts):
            self._stack.append(np.zeros(len(texts), np.int32))
            return
        codes = self._call_stacks
        numbers = [codes.setdefault(text or "", len(codes)) for text in texts]
        self._stack.append(np.array(numbers, np.int32))

    def _add_steps(
        self, events: Sequence[AnyEvent], frame: I4, start: I8, end: I8, thread: I4
    ) -> None:
        steps = np.isin(frame, list(self._context.ranges.steps))
        for row in np.flatnonzero(steps).tolist():
            if match := STEP.fullmatch(events[row].name):  # a frame may have other names as well
                key = (int(match[1]), int(thread[row]))
                self._steps.setdefault(key, (int(start[row]), int(end[row])))

    def build(self) -> RawRanges:
        """Build the table of all ranges."""
        return self._rows.build()

    def operators(self, forward: I8 | None) -> RawOperators | None:
        """Build what is known of operators besides, row by row; None where that is nothing."""
        code = np.concatenate(self._stack)
        if len(self._call_stacks) == 1 and forward is None:
            return None
        stacks = _build_call_stacks(self._context, list(self._call_stacks))
        return RawOperators(stacks[code], np.full(len(code), -1) if forward is None else forward)

    def steps(self, process_of: I4) -> ProfilerSteps:
        """Build the steps, each once in its process, in the order of their starts."""
        steps, seen = TableBuilder(ProfilerSteps), set()
        for start, end, number, thread in sorted(
            (*span, *key) for key, span in self._steps.items()
        ):
            process = process_of[thread]
            if (number, process) not in seen:
                seen.add((number, process))
                row = (number, process, start, end, thread)
                named = zip(_STEP_COLUMNS, row, strict=True)
                steps.add(**{name: np.array([value]) for name, value in named})
        return steps.build()


def _build_call_stacks(context: KinetoContext, texts: Sequence[str]) -> I4:
    """Build stacks of ``texts`` such as ``inner.py(3): f;outer.py(7): <module>``, i4[n]."""
    frames = FrameIds(context.frames, python_frame)
    paths = [[frames[name] for name in text.split(";") if name][::-1] for text in texts]
    stacks = np.full(len(paths), EMPTY, np.int32)
    deepest = min(max(map(len, paths)), _MAX_FRAMES)
    for depth in range(deepest):
        rows = np.array([row for row, path in enumerate(paths) if len(path) > depth])
        stacks[rows] = context.stacks.extend(
            stacks[rows], np.array([paths[row][depth] for row in rows])
        )
    return stacks
