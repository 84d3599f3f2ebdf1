"""Run ``flame attach`` on a terminal: the list if nothing was named, then the live app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flame.core.live.window import ALL, LAST_10, LiveWindow

if TYPE_CHECKING:
    from flame.attach.discover.model import FinishedRecording, Job
    from flame.core.options import LoadOptions
    from flame.core.projection.selection import Selection
    from flame.options.config import Config
    from flame.tui.shell.start import Start

_INSTEAD = "flame attach --list shows what there is, flame view --print PATH a recording"


def run(
    what: str | None,
    options: LoadOptions,
    selection: Selection,
    window: LiveWindow | None,
    config: Config,
    start: Start,
) -> int:
    """Attach to ``what``, or to what the user chooses; the exit code.

    Without a ``window`` the last seconds are shown, of what has ended all. Raises UsageError where
    the terminal cannot draw, and what `flame.attach.command.attach` raises.
    """
    from flame.tui.shell.base_app import check_terminal

    check_terminal(_INSTEAD)  # Before anything is done to a process.
    start.background.wait()
    start.background.release()  # Some ways to attach ask for something.
    chosen = what if what is not None else _picked(config, start)
    if chosen is None:
        return 0
    from flame.attach.command import attach, target_of
    from flame.tui.live.app import run_live

    attached = attach(target_of(chosen), options)
    window = window or (ALL if attached.ended else LAST_10)
    followed = (attached.feed, attached.watch, attached.title)
    return run_live(*followed, options, selection, window, config, start)


def _picked(config: Config, start: Start) -> Job | FinishedRecording | None:
    from flame.attach.discover.finder import ProcessFinder
    from flame.tui.attach.picker import pick

    return pick(ProcessFinder().find, config, start)
