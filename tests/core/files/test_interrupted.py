"""An exception of a signal's handler, after any call in turn: no temporary file is left behind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from flame.core.files import atomic
from flame.core.files.atomic import atomic_output, private_output
from flame.core.files.cache import Cache
from flame.core.files.temporary import temporary_folder

_OURS = str(Path(atomic.__file__).parent)


class Signalled(BaseException):
    """What a handler raises, such as KeyboardInterrupt."""


@contextmanager
def interrupted(after: int) -> Iterator[list[str]]:
    """Raise in this many calls that the modules of files make: Python looks for signals there.

    Yields what they have called until then.
    """
    called: list[str] = []

    def count(frame: FrameType, event: str, of: object) -> None:
        if event not in ("call", "c_return") or not frame.f_code.co_filename.startswith(_OURS):
            return
        called.append(getattr(of, "__name__", frame.f_code.co_name))
        if len(called) == after:
            sys.setprofile(None)
            raise Signalled

    before = sys.getprofile()
    try:
        sys.setprofile(count)
        yield called
    except Signalled:
        pass
    finally:
        sys.setprofile(before)


def lock(_: Path) -> None:
    with Cache().lock("a", lambda: None):
        pass


def make_result(_: Path) -> None:
    with Cache().workspace() as folder:
        (folder / "made").write_bytes(b"data")
        Cache().keep(folder / "made", "a", ".x")


def make_folder(folder: Path) -> None:
    with temporary_folder(folder) as made:
        (made / "file").write_bytes(b"data")


def write(folder: Path) -> None:
    with atomic_output(str(folder / "out")) as file:
        file.write(b"data")


def write_private(folder: Path) -> None:
    with private_output(folder / "private" / "out") as file:
        file.write(b"data")


# A folder that is being looked through, or a descriptor, is nobody's then, until it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("work", [lock, make_result, make_folder, write, write_private])
def test_nothing_is_left_wherever_a_signal_comes(
    work: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    work(tmp_path)  # what is imported late is there
    with interrupted(after=0) as called:
        work(tmp_path)
    assert called
    for after in range(1, len(called) + 1):
        with interrupted(after) as told:
            work(tmp_path)
        assert not list(tmp_path.rglob(".flame-*")), (after, told[-1])
