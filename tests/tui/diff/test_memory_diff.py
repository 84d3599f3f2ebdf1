"""Memory snapshots compared in the app: peaks, in bytes."""

from __future__ import annotations

from pathlib import Path

from tests.support.writers.snapshotfile import SnapshotFile
from tests.tui.diff.opened import open_diff


def snapshot(path: Path, activations: int) -> Path:
    file = SnapshotFile()
    file.alloc(1_000_000, ("main", "weights"))
    file.free(file.alloc(activations, ("main", "forward")))
    return file.write(path)


async def test_peaks_are_compared_in_the_app(tmp_path: Path) -> None:
    base, new = (snapshot(tmp_path / f"{at}.pickle", at * 500_000) for at in (1, 2))
    async with open_diff(base, new) as user:
        await user.rest()
        assert "BASE 1.50 MB → NEW 2.00 MB   +500 kB" in user.read("change")
        assert "+500 kB" in user.read("icicle")
