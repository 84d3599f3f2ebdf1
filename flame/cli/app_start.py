"""Bring what every app starts with: what is remembered of the user, and what the terminal says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flame.options.config import Config, is_in_browser

if TYPE_CHECKING:
    from flame.tui.shell.start import Start


@contextmanager
def started(config: Config, settings: frozenset[str]) -> Iterator[Start]:
    """Begin what the app needs besides its trace, and write at the end what is to be remembered.

    ``settings`` names those that the command line says. The terminal answers while the block
    imports the app.
    """
    from flame.console.background_colour import asked_background
    from flame.options.preferences import open_memory
    from flame.tui.shell.start import Start

    memory = open_memory(config)
    recalled = memory.preferences.without(settings)
    by_background = (recalled.theme or config.theme) == "auto" and not is_in_browser()
    with asked_background(by_background) as background:
        try:
            yield Start(memory, recalled, background)
        finally:
            memory.settle()
