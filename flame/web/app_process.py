"""Run the app of one page, as a process that ends with the page or the server."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

LARGEST = (1000, 500)
"""Columns and rows of the largest terminal: a page may ask for any."""
_SMALLEST = 1
_GRACE = 5.0
"""Seconds that an app has to end when its page is closed."""


class AppProcess(AppService):
    """A process that draws for the page behind ``connection``."""

    def __init__(
        self,
        words: Sequence[str],
        connection: web.WebSocketResponse,
        downloads: DownloadManager,
    ) -> None:
        async def close_page() -> None:
            await connection.close()

        super().__init__(
            "",
            write_bytes=connection.send_bytes,
            write_str=connection.send_str,
            close=close_page,
            download_manager=downloads,
        )
        self._words = words

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        """Start the program without a shell, for a terminal of ``width`` x ``height`` cells."""
        columns, rows = _bounded(width, height)
        self._process = await asyncio.create_subprocess_exec(
            *self._words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(columns, rows),
        )
        self._stdin = self._process.stdin
        return self._process

    async def stop(self) -> None:
        """Ask the app to end, and see that it does."""
        try:
            await asyncio.wait_for(super().stop(), _GRACE)
        except TimeoutError:
            if self._process is not None and self._process.returncode is None:
                self._process.kill()

    async def set_terminal_size(self, width: int, height: int) -> None:
        """Tell the app the new size of its terminal in cells."""
        await super().set_terminal_size(*_bounded(width, height))


def _bounded(columns: int, rows: int) -> tuple[int, int]:
    """Keep a terminal's size between one cell and `LARGEST`."""
    most_columns, most_rows = LARGEST
    return (
        min(max(columns, _SMALLEST), most_columns),
        min(max(rows, _SMALLEST), most_rows),
    )
