"""Read CUDA API calls (runtime and driver) and the call chains recorded with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, distinct
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import repeat
from flame.core.model.frames import Frame, Kind
from flame.core.model.raw import RawCalls, TableBuilder
from flame.core.model.stacks import EMPTY
from flame.core.model.threads.call_rows import FailedCalls
from flame.core.names.cuda import api_name
from flame.core.readers.nsys.call_results import RESULT, CallResults, outcomes
from flame.core.readers.nsys.context import NsysContext
from flame.core.readers.shared.row_ids import RowIds
from flame.core.readers.sqlite.numbering import KeyColumns, RowNumbers
from flame.core.readers.sqlite.source import NULL, NUMBER, TableKey, TableQuery
from flame.core.units import format_counted

TABLE = "CUPTI_ACTIVITY_KIND_RUNTIME"
CHAINS = "CUDA_CALLCHAINS"
_BACKTRACE_CLASS = 67  # ENUM_NSYS_EVENT_CLASS: the call again, with its backtrace
_PYTHON_MARK = "[Python] "
_MAX_FRAMES = 500  # per call chain


@dataclass(frozen=True)
class CallChains:
    """Stacks by chain id: sorted ``ids``, and per id the Python and the native stack."""

    ids: I8
    python: I4
    native: I4
    last_id: int

    def stacks_of(self, chain: I8) -> tuple[I4, I4]:
        """Return (python, native) stacks of chain ids; the empty stack for unknown chains."""
        if not len(self.ids):
            return np.full(len(chain), EMPTY, np.int32), np.full(len(chain), EMPTY, np.int32)
        place = np.minimum(np.searchsorted(self.ids, chain), len(self.ids) - 1)
        is_known = self.ids[place] == chain
        return np.where(is_known, self.python[place], EMPTY), np.where(
            is_known, self.native[place], EMPTY
        )


@dataclass(frozen=True, eq=False)
class _PlainCalls:
    """The columns of `RawCalls` without stacks."""

    start: I8
    end: I8
    thread: I4
    correlation: I8
    frame: I4
    chain_only: Bool


def read_calls(context: NsysContext) -> tuple[RawCalls, FailedCalls | None]:
    """Read all CUDA API calls, with the stacks of their call chains, and which of them failed.

    That is None where the table does not say what they returned.
    """
    batches = TableBuilder(_PlainCalls, context.source.size(TABLE))
    chain_ids = [np.zeros(0, np.int64)]
    rows = RowNumbers(4)
    shared, results = KeyColumns(rows, _describe_keys(context)), CallResults(rows, slot=3)
    key = TableKey(("globalTid", "nameId", "eventClass", RESULT), rows)
    columns = ("start", "end", "correlationId", "callchainId")
    for chunk in context.source.chunks(TableQuery(TABLE, columns, key)):
        start, end = context.spans("CUDA API calls", chunk["start"], chunk["end"])
        thread, frame, chain_only, outcome = shared.of(chunk[NUMBER])
        results.add(outcome, chunk[NUMBER])
        chain_ids.append(chunk["callchainId"])
        batches.add(
            start=start,
            end=end,
            thread=thread,
            correlation=np.where(chunk["correlationId"] == NULL, 0, chunk["correlationId"]),
            frame=frame,
            chain_only=chain_only,
        )
        context.advance("reading API calls", TABLE, len(start))
    plain = batches.build()
    none = repeat(np.int32(EMPTY), len(plain.start))
    calls = RawCalls(**vars(plain), python=none, native=none)
    failed = results.build(calls) if RESULT in context.source.columns(TABLE) else None
    return _add_chains(context, calls, chain_ids), failed


def _describe_keys(context: NsysContext) -> Callable[[I8], list[Column]]:
    """Make what tells thread, frame and outcome from keys, and which calls only repeat others."""
    names = RowIds(lambda key: _launch_frame(context, key))

    def describe(keys: I8) -> list[Column]:
        thread, name, event_class, result = keys.T
        repeats = event_class == _BACKTRACE_CLASS
        thread, frame = context.thread_numbers(thread), names.look_up([name])
        return [thread, frame, repeats, outcomes(result, repeats)]

    return describe


def _launch_frame(context: NsysContext, key: int) -> int:
    unknown = "without a name" if key == NULL else f"with unknown name {key}"
    name = api_name(context.text_of(key)) or f"[API call {unknown}]"
    return context.frames.add(Frame(Kind.LAUNCH, name))


def _add_chains(context: NsysContext, calls: RawCalls, chain_ids: list[I8]) -> RawCalls:
    """Add the stacks; correct the ids of exporters that count calls from 0 and chains from 1."""
    if not len(calls.start) or not context.source.columns(CHAINS):
        return calls
    chains = _read_chains(context)
    if not len(chains.ids):
        return calls
    chain = np.concatenate(chain_ids)
    offset = _chain_offset(context, calls, chains, chain)
    none = (chain == NULL) if offset else (chain == NULL) | (chain == 0)
    python, native = chains.stacks_of(np.where(none, NULL, chain + offset))
    return replace(calls, python=python, native=native)


def _chain_offset(context: NsysContext, calls: RawCalls, chains: CallChains, chain: I8) -> int:
    """Return 1 where chain ids are off by one, else 0; per file, confirmed by the calls' names."""
    used = chain[chain != NULL]
    shifted = len(used) > 0 and used.min() == 0 and used.max() == chains.last_id - 1
    if not shifted:
        return 0
    rows = np.flatnonzero(chain != NULL)
    plain, moved = (_count_confirmed(context, calls, chains, rows, chain + by) for by in (0, 1))
    if moved < plain:
        return 0
    context.warnings.append(
        "call chain ids are off by one in this export (a known exporter fault): corrected; "
        f"{moved:,} of {len(rows):,} chains hold their call's own name ({plain:,} without)"
    )
    return 1


def _count_confirmed(
    context: NsysContext, calls: RawCalls, chains: CallChains, rows: I8, chain: I8
) -> int:
    """Count the ``rows`` with a chain in which the call's own name is a frame."""
    stacks = context.stacks.build()
    _, native = chains.stacks_of(chain[rows])
    pairs, place = distinct((native.astype(np.int64) << 32) | calls.frame[rows])
    fits = []
    for pair in pairs.tolist():
        name = context.frames[pair & 0xFFFFFFFF].name
        fits.append(any(context.frames[f].name == name for f in stacks.path(pair >> 32)))
    return int(np.array(fits, bool)[place].sum())


def _read_chains(context: NsysContext) -> CallChains:
    """Read all chains as stacks, outermost frame first (stackDepth 0 is the leaf)."""
    names = ["id", "symbol", "module", "unresolved", "stackDepth"]
    parts = list(context.source.chunks(TableQuery(CHAINS, names)))
    if not parts:
        empty = np.zeros(0, np.int64)
        return CallChains(empty, empty.astype(np.int32), empty.astype(np.int32), 0)
    table = {name: np.concatenate([part[name] for part in parts]) for name in names}
    order = np.lexsort((-table["stackDepth"], table["id"]))
    ids, chain = distinct(table["id"][order])
    frame_of = RowIds(lambda *row: context.frames.add(_chain_frame(context, *row)))
    frames = frame_of.look_up([table[name][order] for name in ("symbol", "module", "unresolved")])
    python, native = _build_stacks(context, chain, frames)
    return CallChains(ids, python, native, int(ids[-1]))


def _build_stacks(context: NsysContext, chain: I8, frames: I4) -> tuple[I4, I4]:
    """Build the (python, native) stack of each chain from its frames, outermost first."""
    size = int(chain[-1]) + 1
    python, native = np.zeros(size, np.int32), np.zeros(size, np.int32)
    first = np.searchsorted(chain, np.arange(size))
    step = np.arange(len(chain)) - first[chain]
    is_python = np.array(
        [context.frames[f].kind == Kind.PYTHON for f in range(len(context.frames))]
    )
    too_deep = int((step == _MAX_FRAMES).sum())
    if too_deep:
        have = format_counted(too_deep, "call chain has", "call chains have")
        context.warnings.append(f"{have} more than {_MAX_FRAMES} frames: the innermost left out")
    for rows in _rows_by_depth(step)[:_MAX_FRAMES]:
        for stack, own in ((python, is_python[frames[rows]]), (native, ~is_python[frames[rows]])):
            _push_frames(context, stack, chain[rows[own]], frames[rows[own]])
    return python, native


def _rows_by_depth(step: I8) -> list[I8]:
    order = np.argsort(step, kind="stable")
    return np.split(order, np.cumsum(np.bincount(step))[:-1])


def _push_frames(context: NsysContext, stack: I4, chain: Column, frames: Column) -> None:
    stack[chain] = context.stacks.extend(stack[chain], frames)


def _chain_frame(context: NsysContext, symbol: int, module: int, unresolved: int) -> Frame:
    """Make a native frame, or a Python frame where the symbol is marked as such."""
    text, path = context.text_of(symbol), context.text_of(module)
    if text.startswith(_PYTHON_MARK):
        return Frame(Kind.PYTHON, text[len(_PYTHON_MARK) :], path if path.endswith(".py") else "")
    library = path.replace("\\", "/").rsplit("/", 1)[-1]
    known = bool(text) and unresolved in (0, NULL)
    name = text if known else f"{library or '?'}!{text or symbol}"
    return Frame(Kind.NATIVE, name, extra=(("module", path),) if path else ())
