"""Make a file of another once, have the cache keep it, and read it from there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Generic, TypeVar

from flame.core.errors import InputError
from flame.core.files.cache import Cache
from flame.core.files.cache_folder import NoCacheError
from flame.core.files.digest import file_digest
from flame.core.files.temporary import scratch_folder
from flame.core.lazy_dataclass import dataclass
from flame.core.options import Progress

T = TypeVar("T")

Reading = Callable[[Path, bool], T]
"""Reads a converted file; hears whether that stays where it is afterwards."""

_CACHE = Cache()


@dataclass(frozen=True)
class Converted(Generic[T]):
    """What a conversion has been read as, and notes on the way there."""

    value: T
    notes: tuple[str, ...] = ()


class Conversion(ABC):
    """A way to make a file that can be read of one that cannot.

    ``stage`` is what progress is reported for, ``suffix`` that of the file made, ``way`` names what
    is asked for, ``maker`` what makes it.
    """

    suffix: str

    @property
    @abstractmethod
    def stage(self) -> str: ...

    @property
    @abstractmethod
    def way(self) -> str: ...

    @property
    @abstractmethod
    def maker(self) -> str: ...

    @abstractmethod
    def make(self, path: Path, folder: Path, progress: Progress) -> Path:
        """Make the file in ``folder`` of the one at ``path``; InputError, OSError."""

    def read(
        self, path: Path, progress: Progress, read: Reading[T], *, cache: bool
    ) -> Converted[T]:
        """Convert the report at ``path`` and ``read`` the result, which the ``cache`` keeps.

        A later call for a report of the same content finds it there, as long as the same program
        would make it. A kept one that is damaged, or that ``read`` raises InputError for, is made
        anew. ``progress`` is called twenty times a second and may raise to stop. ``read`` is also
        told whether the file stays: without ``cache``, or one to be trusted, it is gone afterwards.
        Raises InputError where it cannot be made.
        """
        if not cache:
            return Converted(self._read_once(path, progress, read))
        try:
            return self._read_cached(path, progress, read)
        except NoCacheError as error:
            note = f"{path.name}: its conversion is not kept for the next time: {error}"
        return Converted(self._read_once(path, progress, read), (note,))

    def _read_once(self, path: Path, progress: Progress, read: Reading[T]) -> T:
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(scratch_folder())
            except OSError as error:
                raise _unconverted(path, error) from None
            made = self._make(path, folder, progress)
            return _read_new(path, made, read, stays=False)

    def _read_cached(self, path: Path, progress: Progress, read: Reading[T]) -> Converted[T]:
        kept = self._find_or_keep(path, progress)
        damaged = kept.replaces_damaged
        if not kept.is_new:
            try:
                return Converted(read(kept.path, True))
            except InputError:
                _CACHE.drop(kept.path)
            kept, damaged = self._find_or_keep(path, progress), True
        text = f"{path.name}: the conversion kept in the cache was damaged, and was made again"
        return Converted(_read_new(path, kept.path, read, stays=True), (text,) if damaged else ())

    def _find_or_keep(self, path: Path, progress: Progress) -> _Kept:
        """Find the conversion in the cache, or make it."""

        def tick() -> None:
            progress(self.stage, 0, 0)

        try:
            asked = f"{file_digest(path, tick)}-{self.way}"
            with _CACHE.lock(asked, tick):
                key = f"{asked}-{self.maker}"
                found, damaged = _CACHE.find(key, self.suffix)
                if found:
                    return _Kept(found)
                with _CACHE.workspace() as folder:
                    made = self._make(path, folder, progress)
                    return _Kept(_CACHE.keep(made, key, self.suffix), True, damaged)
        except OSError as error:
            raise _unconverted(path, error) from None

    def _make(self, path: Path, folder: Path, progress: Progress) -> Path:
        try:
            return self.make(path, folder, progress)
        except OSError as error:
            raise _unconverted(path, error) from None


@dataclass(frozen=True)
class _Kept:
    path: Path
    is_new: bool = False
    replaces_damaged: bool = False


def _read_new(path: Path, made: Path, read: Reading[T], stays: bool) -> T:
    """Read a new conversion; one that cannot be read goes: another program may do better."""
    try:
        return read(made, stays)
    except InputError as error:
        _CACHE.drop(made)
        reason = str(error).removeprefix(f"{made}: ")
        raise InputError(f"{path}: {reason}") from None


def _unconverted(path: Path, error: OSError) -> InputError:
    return InputError(f"{path}: cannot be converted: {error.strerror or error}")
