"""Two traces whose every name would steer the terminal that shows it."""

from __future__ import annotations

from pathlib import Path

from tests.support.writers.fdumpfile import DumpFile
from tests.support.writers.nsysfile import HTOD, NsysFile

STEERING = "\x1b]0;PWN\x07\x1b[8m\u202e\x9b2J\r\b\nPWN"
"""Sets the title, hides, turns the writing direction, clears; the last begins a line of its own."""

OBEYED = ("\x1b]0;", "\x1b[8m", "PWN\x07", "\u202e", "\x9b", "\b")
"""What of it no program of a terminal sends of its own accord, flame's app neither."""


def steering_traces(folder: Path) -> list[Path]:
    """Two exports in ``folder``, of unlike GPUs: labels stand beside what they are of."""
    paths = [folder / f"{name}{STEERING}.sqlite" for name in "ab"]
    for number, path in enumerate(paths):
        with NsysFile(path) as file:
            file.gpu(0, f"GPU{STEERING}", pid=100)
            file.process(100, f"trainer{STEERING}")
            file.thread(100, 100, f"main{STEERING}")
            file.nvtx(f"step{STEERING}", 0, 900)
            for place in range(3):
                at = 1_000 * place
                file.api(f"launch{STEERING}", at + 20, at + 25, corr=place + 1)
                end = at + 200 + 50 * number * place
                file.kernel(f"gemm{STEERING}", at + 100, end, corr=place + 1)
            file.memcpy(HTOD, 4_000, 4_300 + 100 * number, corr=None)
    return paths


def steering_dumps(folder: Path) -> list[Path]:
    """Two dumps in ``folder``, whose names are usual, of processes that call themselves so."""
    for pid in (7, 8):
        dump = DumpFile(pid)
        dump.meta("process", STEERING)
        for place in (0, 1):
            at, number = 200 * place, place + 1
            dump.launch(at + 100, at + 110, number, tid=pid)
            end = at + 190 + 20 * (pid - 7)
            dump.kernel("gemm", at + 120, end, number, tid=pid, device=pid - 7)
        (folder / f"{pid}-a.fdump").write_bytes(dump.data())
    return sorted(folder.iterdir())
