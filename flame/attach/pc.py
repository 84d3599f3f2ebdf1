"""``flame attach --pc``: PC sampling begins or ends in what is recorded already."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from flame.attach.discover.model import Way
from flame.attach.library.control import Control, SamplingReply
from flame.attach.target import Target
from flame.console.terminal import say
from flame.core.errors import InputError

_SKIPPED = "no GPU work of it is recorded"


def switch(target: Target, mode: str) -> int:
    """Switch the PC sampling of all its processes to ``mode``, and say what came of each.

    The exit code: not 0 where one of them refused, or none records GPU work. InputError where
    nothing is recorded at all.
    """
    if target.ended:
        raise InputError(f"{target.title}: its recording has ended")
    if target.way is not Way.DUMP or not target.dumps:
        raise InputError(f"{target.title}: records nothing")
    done = [_switch(dump, mode) for dump in target.dumps]
    return InputError.exit_code if False in done or True not in done else 0


def _switch(dump: Path, mode: str) -> bool | None:
    """Whether it was done; None for a process that has nothing to be sampled."""
    control = Control.open(dump)
    if control is None:
        say(f"{dump}: nobody answers beside it")
        return False
    with closing(control):
        status = control.status()
        if status is not None and not status.cupti:
            say(f"{control.pid}: {_SKIPPED}")
            return None
        reply = control.sample(mode)
        say(f"{control.pid}: {_came_of(reply, mode)}")
        return reply is not None and reply.ok


def _came_of(reply: SamplingReply | None, mode: str) -> str:
    if reply is None:
        return "no answer: look again, or it is recorded by another version of flame"
    if not reply.ok:
        return reply.error or "refused"
    if mode == "off":
        return "PC sampling is off"
    if not reply.contexts:
        return f"PC sampling ({mode}) begins with its first launch"
    contexts = "1 context" if reply.contexts == 1 else f"{reply.contexts} contexts"
    return f"PC sampling ({mode}) in {contexts}"
