"""Small traces with something to report, and a way to read the report view."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from flame.tui.report.content import ReportContent
from tests.support.writers.nsysfile import NsysFile
from tests.tui.conftest import User, open_app

STEPS = 60
PERIOD = 1_000_000


def hungry(path: Path, name: str = "gemm", begin: int = 0) -> Path:
    """60 ms in each of which the GPU waits for the host, and then runs a kernel for 0.1 ms.

    Ranges take turns; every tenth kernel is another one, and takes longer.
    """
    with NsysFile(path) as trace:
        trace.gpu(0, "NVIDIA H100 80GB HBM3", pid=100)
        trace.process(100, "train")
        trace.thread(100, 100, "worker")
        for step in range(STEPS):
            at = begin + step * PERIOD
            trace.nvtx(("forward", "backward")[step % 2], at, at + 950_000)
            trace.api("cudaLaunchKernel_v7000", at + 800_000, at + 810_000, step + 1)
            seldom = step % 10 == 9
            length = 150_000 if seldom else 100_000
            start = at + 820_000
            kernel = "norm" if seldom else name
            trace.kernel(kernel, start, start + length, step + 1)
    return path


def content(user: User) -> ReportContent:
    """What the view shows."""
    found = user.screen.parts.report._content
    assert found is not None
    return found


@asynccontextmanager
async def on_report(
    path: Path, size: tuple[int, int] = (120, 40), section: str = "", row: int = -1
) -> AsyncIterator[User]:
    """The app, once all of the report is there; at a section, if one is named."""
    async with open_app(path, size) as user:
        await user.press("exclamation_mark")
        await turn(user, section, row)
        yield user


async def turn(user: User, section: str, row: int = -1) -> None:
    """Choose a section, and in it a row."""
    if section:
        user.screen.parts.report.choose(section, row)
        user.screen._show()
    await user.rest()


def listed(user: User) -> list[str]:
    """The lines of the list."""
    return user.read("report-list").splitlines()


def page(user: User) -> str:
    return user.read("report-page")


def rows(user: User) -> list[list[str]]:
    """The cells of all rows of the section that is chosen."""
    shown = content(user).page
    return [shown.tables[at.table].cells[at.row] for at in shown.rows]
