"""Which projection is shown, which is being worked out, and the way back to those before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Thread

from textual.message import Message

from flame.core.errors import FlameError
from flame.core.projection.selection import Selection
from flame.tui.session.carry import Keeper, Stand, carry, stand_of, take_stand
from flame.tui.session.query import Found, Query, find
from flame.tui.session.session import Projection, Session
from flame.tui.toolkit.back_stack import Trail
from flame.tui.toolkit.background import hand_in

_REMEMBERED = 50


class Projected(Message):
    """A projection is ready, with what the search finds in it, or has failed."""

    def __init__(self, outcome: Ready | Exception, ticket: int) -> None:
        super().__init__()
        self.outcome = outcome
        self.ticket = ticket


@dataclass(frozen=True)
class Ready:
    """A projection; ``step`` is 0 for a new one, -1 for an undo, +1 for a redo."""

    projection: Projection
    found: Found | None
    step: int


@dataclass
class Projector:
    """``shown`` is on screen, ``wanted`` is what was last asked for; ``post`` takes the results."""

    session: Session
    shown: Projection
    post: Callable[[Message], object]
    wanted: Selection = field(init=False)
    busy: bool = field(init=False, default=False)
    _ticket: int = field(init=False, default=0)
    _trail: Trail[Selection] = field(init=False, default_factory=lambda: Trail(_REMEMBERED))
    _levels: dict[str, tuple[str, ...] | None] = field(init=False, default_factory=dict)
    _keeper: Keeper = field(init=False, default_factory=Keeper)
    _stands: dict[Selection, Stand] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.wanted = self.shown.selection
        self._levels[self.shown.metric.table] = self.wanted.levels

    def ask(self, candidates: list[Selection], query: Query | None, step: int = 0) -> None:
        """Work out the first of ``candidates`` that has anything, and search it, in a thread."""
        self.wanted = candidates[0]
        self._ticket += 1
        self.busy = True
        ticket, session = self._ticket, self.session

        def work() -> None:
            outcome: Ready | Exception
            try:
                projection = session.project(candidates)
                found = find(projection.view.tree, query) if query else None
                outcome = Ready(projection, found, step)
            except Exception as error:
                outcome = error
            hand_in(Projected(outcome, ticket), self.post)

        Thread(target=work, daemon=True).start()

    def take(self, message: Projected) -> Ready | FlameError | None:
        """What ``message`` brings; None if something else has been asked for since.

        Raises what should not have happened.
        """
        if message.ticket != self._ticket:
            return None
        self.busy = False
        outcome = message.outcome
        if isinstance(outcome, Ready):
            self._show(outcome)
        elif isinstance(outcome, FlameError):
            self.wanted = self.shown.selection
        else:
            raise outcome
        return outcome

    def _show(self, ready: Ready) -> None:
        before, after = self.shown, ready.projection
        self._remember(before)
        if ready.step:
            self._trail.go(ready.step, before.selection)
        elif after.selection != before.selection:
            self._trail.leave(before.selection)
        if after is not before:
            self._carry(before, after, bool(ready.step))
        after.view.mark(ready.found)
        self.shown, self.wanted = after, after.selection
        self._levels[after.metric.table] = after.selection.levels

    def _remember(self, left: Projection) -> None:
        self._stands.pop(left.selection, None)
        self._stands[left.selection] = stand_of(left.view)
        while len(self._stands) > _REMEMBERED:
            del self._stands[next(iter(self._stands))]

    def _carry(self, before: Projection, after: Projection, back: bool) -> None:
        """Show the same frames, or ``back`` at a selection those that it had when it was left."""
        stand = self._stands.get(after.selection) if back and not after.view.width else None
        if stand is not None:
            take_stand(after.view, stand)
        carry(before.view, after.view, zoom=not back)

    def renew(self, session: Session, latest: Projection, found: Found | None) -> bool:
        """Show ``latest``, a later state of what is shown; False if other things are wanted now."""
        if self.busy or latest.selection != self.wanted:
            return False
        self._keeper.carry(self.shown.view, latest.view)
        latest.view.mark(found)
        self.session, self.shown = session, latest
        return True

    def back(self, query: Query | None, step: int) -> bool:
        """Go to the selection before (-1), or after it again (+1); False if there is none."""
        selection = self._trail.ahead(step)
        if selection is not None:
            self.ask([selection], query, step)
        return selection is not None

    def levels_of(self, table: str) -> tuple[str, ...] | None:
        """The levels last chosen for metrics of ``table``."""
        return self._levels.get(table)
