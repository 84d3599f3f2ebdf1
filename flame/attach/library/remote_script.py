"""Hand a script to another process and take its answer, in a private folder that both reach."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from flame.core.mapped_files import open_regular

ROOM = Path("/tmp")
"""Where such folders are made: not where TMPDIR says here, which is another place there."""

_SCRIPT, _WANTED, _ANSWER = "load.py", "wanted", "said"
_PAUSE = 0.02
_LONGEST = 4000


class RemoteScript:
    """Keep the folder with the script in it; `flame.attach.library.injected.attach` answers.

    It belongs to the user and group that the other process runs as. Files are reached through the
    folder's descriptor, and links not followed: that user may put anything there. Used as a
    context, it is removed in the end, unless the script may still be run.
    """

    def __init__(self, owner: tuple[int, int]) -> None:
        """Make the folder; OSError where there is no room for it."""
        self.place = Path(tempfile.mkdtemp(prefix="flame-attach-", dir=ROOM))
        self._folder = os.open(self.place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._owner = owner
        self._pending = False

    def __enter__(self) -> RemoteScript:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._pending:
            self._remove()
        os.close(self._folder)

    @property
    def script(self) -> Path:
        """Return where the script is."""
        return self.place / _SCRIPT

    def prepare(self, text: str) -> None:
        """Write the script, and leave the folder to the other user. OSError if that fails."""
        for name, content in ((_SCRIPT, text), (_WANTED, "")):
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self._folder)
            with os.fdopen(file, "w", encoding="utf-8") as opened:
                opened.write(content)
                self._give(file)
        self._give(self._folder)

    def _give(self, file: int) -> None:
        if os.geteuid() == 0:
            os.fchown(file, *self._owner)

    def wait(self, seconds: float, alive: Callable[[], bool]) -> str | None:
        """Return what the script says; None if it is not ``alive``, or does not run in time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and alive():
            answer = self._answer()
            if answer is not None:
                return answer
            time.sleep(_PAUSE)
        return self._give_up(alive())

    def _give_up(self, alive: bool) -> str | None:
        """The script moves what is removed here: whoever comes first decides whether it is late."""
        try:
            os.unlink(_WANTED, dir_fd=self._folder)
        except OSError:
            return self._answer()
        self._pending = alive
        return None

    def _answer(self) -> str | None:
        with suppress(OSError):
            file = open_regular(_ANSWER, follow_link=False, folder=self._folder)
            with os.fdopen(file, "rb") as opened:
                return opened.read(_LONGEST).decode("utf-8", "replace")
        return None

    def _remove(self) -> None:
        for name in (_SCRIPT, _WANTED, _ANSWER):
            with suppress(OSError):
                os.unlink(name, dir_fd=self._folder)
        with suppress(OSError):
            self.place.rmdir()
