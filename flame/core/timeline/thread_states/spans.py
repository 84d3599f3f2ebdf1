"""Tell when which thread was held up, and by what, as a timeline draws it."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from flame.core.columns import unique_rows
from flame.core.model.calls import StateKind
from flame.core.model.profile import Profile
from flame.core.model.threads.events import ThreadEvents
from flame.core.model.threads.states import StateOwner, StateSpans
from flame.core.timeline.devices import source_label
from flame.core.timeline.lanes import event_thread_label, thread_label
from flame.core.timeline.thread_states.states import (
    COLLECTION,
    LOADING,
    PROFILER,
    States,
    find_states,
    gil_times,
)

_KINDS = {
    COLLECTION: StateKind.COLLECTION,
    LOADING: StateKind.LOADING,
    PROFILER: StateKind.PROFILER,
}
_NO_NAME = "[no name]"
_COLUMNS = ("kind", "start", "end")


def state_spans(profile: Profile) -> StateSpans | None:
    """Find what held threads of ``profile`` up, and the GIL; None where the trace has none of it.

    What is not known to be of a thread is of the others of its process, or of other processes.
    """
    states, gil = find_states(profile), gil_times(profile.events)
    found = [_of_states(profile, states)] if states is not None else []
    if gil is not None:
        found.append(_of_gil(profile, StateKind.GIL_HELD, gil.holding))
        found.append(_of_gil(profile, StateKind.GIL_WAITING, gil.waiting))
    return _joined([one for one in found if len(one)])


def _of_states(profile: Profile, states: States) -> StateSpans:
    process, thread = states.process, states.thread
    first, owner = unique_rows([process, thread]) if len(states) else (process, process)
    pairs = zip(process[first].tolist(), thread[first].tolist(), strict=True)
    return StateSpans(
        tuple(name or _NO_NAME for name in states.names),
        tuple(_owner(profile, *pair) for pair in pairs),
        np.array([_KINDS[state] for state in states.states], np.uint8)[states.name],
        states.name.astype(np.int32),
        owner.astype(np.int32),
        states.start,
        states.end,
    )


def _owner(profile: Profile, process: int, thread: int) -> StateOwner:
    if thread >= 0:
        return StateOwner(thread_label(profile, thread), thread)
    if process < 0:
        return StateOwner("other processes", -1)
    own = profile.processes[process]
    return StateOwner(f"{source_label(profile, own.source)}other threads [{own.pid}]", -1)


def _of_gil(profile: Profile, kind: StateKind, events: ThreadEvents) -> StateSpans:
    return StateSpans(
        tuple(one.name for one in events.names),
        tuple(StateOwner(event_thread_label(profile, one), one.thread) for one in events.threads),
        np.full(len(events), kind, np.uint8),
        events.name,
        events.thread,
        events.start,
        events.end,
    )


def _joined(parts: list[StateSpans]) -> StateSpans | None:
    if not parts:
        return None
    columns = {each: np.concatenate([getattr(one, each) for one in parts]) for each in _COLUMNS}
    for each, table in (("name", "names"), ("owner", "owners")):
        shifts = accumulate((len(getattr(one, table)) for one in parts), initial=0)
        shifted = [
            getattr(one, each) + np.int32(by) for one, by in zip(parts, shifts, strict=False)
        ]
        columns[each] = np.concatenate(shifted)
    names = tuple(name for one in parts for name in one.names)
    owners = tuple(owner for one in parts for owner in one.owners)
    return StateSpans(names, owners, **columns)
