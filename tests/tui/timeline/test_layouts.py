"""What is worked out in which order, and what a later state of a trace comes with."""

from __future__ import annotations

from pathlib import Path
from queue import Queue

import pytest
from textual.message import Message

from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions, silent
from flame.core.projection.selection import Selection
from flame.tui.session.session import Projection, open_session
from flame.tui.timeline.layouts import Layouts, Ready
from flame.tui.timeline.prepare import TimelineWork
from flame.tui.toolkit.background import Done
from tests.support.waiting import PATIENCE


def opened(path: Path) -> Projection:
    _, shown = open_session(Inputs((path,)), LoadOptions(), Selection(), silent)
    return shown


def laid_out(layouts: Layouts, posted: Queue[Message], shown: Projection) -> TimelineWork:
    """What `Layouts` makes of ``shown``, once that is there."""
    layouts.begin(shown)
    message = posted.get(timeout=PATIENCE)
    assert isinstance(message, Ready) and layouts.awaits(message.work)
    return layouts.take()


def explained(layouts: Layouts, posted: Queue[Message]) -> Done:
    layouts.find_reasons()
    message = posted.get(timeout=PATIENCE)
    assert isinstance(message, Done)
    return message


def test_rows_come_first_then_the_reasons_once(decode: Path) -> None:
    posted: Queue[Message] = Queue()
    layouts, shown = Layouts(posted.put), opened(decode)
    assert laid_out(layouts, posted, shown).result().causes == ()
    assert layouts.want_reasons() and layouts.busy and not layouts.laying
    assert not layouts.want_reasons()
    reasons = layouts.take_reasons(explained(layouts, posted))
    assert reasons.profile is shown.profile and not layouts.busy
    assert laid_out(layouts, posted, shown).result().causes == reasons.causes != ()
    assert not layouts.want_reasons()


@pytest.mark.parametrize("later", [True, False])
def test_a_later_state_comes_with_its_own_reasons(
    decode: Path, monkeypatch: pytest.MonkeyPatch, later: bool
) -> None:
    posted: Queue[Message] = Queue()
    layouts, shown = Layouts(posted.put), opened(decode)
    laid_out(layouts, posted, shown)
    layouts.want_reasons()
    layouts.take_reasons(explained(layouts, posted))
    monkeypatch.setattr(TimelineWork, "precedes", lambda work, shown: later)
    other = opened(decode)
    work = laid_out(layouts, posted, other)
    assert bool(work.result().causes) == later == (work.reasons is not None)
    assert layouts.want_reasons() == (not later)
