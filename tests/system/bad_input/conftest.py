"""What tests of bad input check: one line of refusal, sums that agree, a folder as it was."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from flame.core.errors import InputError
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.projection.levels import LEVELS
from tests.support.profiles.project_tree import project_tree

LONGEST = 60  # seconds for one test, on a busy machine


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """A test that hangs fails instead."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no answer in {LONGEST} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LONGEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """The files of ``folder``, their content and their times are the same afterwards."""
    before = _listing(folder)
    yield
    assert _listing(folder) == before


def _listing(folder: Path) -> dict[str, tuple[int, bytes]]:
    found = {}
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() and os.access(path, os.R_OK) else b""
        found[str(path)] = (path.lstat().st_mtime_ns, content)
    return found


def refusal(path: Path) -> str:
    """The line with which ``path`` is refused: one line that names the file."""
    with pytest.raises(InputError) as caught:
        load(path)
    line = str(caught.value)
    assert line.splitlines() == [line]
    assert line.startswith(" ".join(f"{path}: ".splitlines()))
    assert caught.value.exit_code == 3
    return line


def check_sums(profile: Profile) -> None:
    """Under every metric the leaves of the tree add up to the table, and nothing is negative."""
    for metric in profile.metrics:
        table = profile.table(metric)
        for levels in (None, LEVELS):
            tree = project_tree(profile, levels, metric=metric.key)
            total = sum(metric.values(table).tolist())
            assert sum(tree.own.tolist()) == int(tree.total[0]) == total
            assert int(tree.count[0]) == len(table)
            assert min(tree.own.tolist()) >= 0


def opens_or_refuses(path: Path) -> None:
    """Damage that cannot be noticed still leaves sums that agree."""
    try:
        profile = load(path)
    except InputError as error:
        assert str(error).splitlines() == [str(error)]
        assert str(error).startswith(f"{path}: ")
    else:
        check_sums(profile)
