"""Find the code of sampled functions: kept beside their cubins, in the cache, or by nvdisasm."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from functools import cached_property
from io import BufferedReader
from pathlib import Path

from flame.core.errors import InputError
from flame.core.files.cache_folder import NoCacheError
from flame.core.lazy_regex import lazy_regex
from flame.core.model.pc_samples import Code
from flame.core.options import Progress
from flame.core.sass import nvdisasm
from flame.core.sass.cache import CodeCache
from flame.core.sass.code_choice import NOT_THERE, CodeChoice, FoundCode, WantedFunctions
from flame.core.sass.code_files import open_bounded, read_codes, write_codes
from flame.core.sass.cubin import CubinFunction, find_functions
from flame.core.sass.module_lives import MOST_ALIKE, CubinId, Cubins

CUBINS = "cubins"
"""The folder beside the dumps of a recording that has the cubins, and their instructions."""

_LARGEST_CUBIN = 1 << 31  # kMaxSaved in inject/sampling/cubins.cpp
_FILE = lazy_regex(r"[0-9a-f]{16}(-[0-9a-f]{16})?\.(cubin|sass)")
_WRITABLE_BY_OTHERS = 0o022
_TIMEOUT = 600.0
"""Seconds for all cubins together."""


def find_codes(
    folder: Path, wanted: WantedFunctions, progress: Progress, *, cache: bool = True
) -> tuple[dict[tuple[Cubins, str], Code], list[str]]:
    """Find the code of the ``wanted`` functions, whose dumps lie in ``folder``.

    By cubins and name, where it is known; and what is to be said of the others. Of several cubins
    that have the function, it is the code in which they agree. The ``cache`` keeps what nvdisasm
    prints.
    """
    with _open_folder(folder / CUBINS) as cubins:
        names = _names_by_cubin(wanted)
        search = _CodeSearch(folder / CUBINS, cubins, len(names), progress, uses_cache=cache)
        found = {cubin: search.find(cubin, names[cubin]) for cubin in names}
    choice = CodeChoice(wanted, found)
    return choice.codes, [*choice.warnings(), *search.warnings()]


def store_codes(folder: Path, wanted: WantedFunctions, progress: Progress) -> list[str]:
    """Write the code of the ``wanted`` functions beside their cubins; return warnings on others.

    Whoever opens the recording then needs no nvdisasm. Raises OSError where nothing can be written.
    """
    with _open_folder(folder / CUBINS) as cubins:
        names = _names_by_cubin(wanted)
        search = _CodeSearch(folder / CUBINS, cubins, len(names), progress)
        found = {cubin: search.find(cubin, names[cubin]) for cubin in names}
        for cubin, one in found.items():
            known = {} if cubins is None else read_codes(cubins, f"{cubin.stem}.sass")
            if cubins is not None and one.codes.keys() - known.keys():
                kept = known | one.codes
                write_codes(cubins, f"{cubin.stem}.sass", search.version, kept)
    return [*CodeChoice(wanted, found).warnings(), *search.warnings()]


def _names_by_cubin(wanted: WantedFunctions) -> dict[CubinId, set[str]]:
    """Return the names to look for in each cubin."""
    names: dict[CubinId, set[str]] = {}
    for cubins, functions in wanted.items():
        for cubin in cubins if len(cubins) <= MOST_ALIKE else ():
            names.setdefault(cubin, set()).update(functions)
    return names


def open_code_files(folder: Path) -> Iterator[tuple[str, BufferedReader]]:
    """Open the cubins of the recording in ``folder`` and what is kept beside them, by name."""
    with _open_folder(folder / CUBINS) as cubins:
        if cubins is None:
            return
        with os.scandir(cubins) as found:
            names = sorted(entry.name for entry in found if _FILE.fullmatch(entry.name))
        for name in names:
            with suppress(OSError), open_bounded(cubins, name, _LARGEST_CUBIN) as file:
                yield name, file


@contextmanager
def _open_folder(folder: Path) -> Iterator[int | None]:
    """Open the folder; None where there is none. No link is followed."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        opened = os.open(folder, flags)
    except (OSError, ValueError):
        yield None
        return
    try:
        yield opened
    finally:
        os.close(opened)


class _CodeSearch:
    """Finds code in a folder, open as ``cubins``; ``version`` is that of nvdisasm."""

    def __init__(
        self,
        place: Path,
        cubins: int | None,
        expected: int,
        progress: Progress,
        *,
        uses_cache: bool = True,
    ) -> None:
        self._place = place
        self._cubins = cubins
        self._expected = expected
        self._done = 0
        self._progress = progress
        self._uses_cache = uses_cache
        self._due = time.monotonic() + _TIMEOUT
        self._uncached = ""

    def find(self, cubin: CubinId, names: AbstractSet[str]) -> FoundCode:
        """Find the code of some functions of a cubin, as far as it is known."""
        self._report_progress()
        known = {} if self._cubins is None else read_codes(self._cubins, f"{cubin.stem}.sass")
        found = FoundCode({name: known[name] for name in names & known.keys()}, {})
        if rest := names - known.keys():
            try:
                found = found.joined(self._find_in_cubin(cubin, rest))
            except InputError as error:
                found = found.joined(FoundCode.none(rest, str(error)))
        self._done += 1
        return found

    def warnings(self) -> Iterator[str]:
        """Yield why what was printed is not kept for the next time."""
        if self._uncached:
            yield f"what nvdisasm printed is not kept for the next time: {self._uncached}"

    @property
    def version(self) -> str:
        return self._tool.version if self._tool else ""

    @cached_property
    def _tool(self) -> nvdisasm.Disassembler | None:
        return nvdisasm.find_disassembler()

    def _report_progress(self) -> None:
        self._progress("disassembling kernels", self._done, self._expected)

    def _tick(self) -> None:
        self._report_progress()
        if time.monotonic() > self._due:
            raise InputError(f"all of it takes longer than {_TIMEOUT:.0f} s")

    def _find_in_cubin(self, cubin: CubinId, names: AbstractSet[str]) -> FoundCode:
        with self._open_cubin(cubin) as file:
            functions = find_functions(file.fileno(), sorted(names), self._tick)
            absent = FoundCode.none(names - functions.keys(), NOT_THERE)
            try:
                codes = self._print_codes(file, functions)
            except InputError as error:
                return absent.joined(FoundCode.none(functions, str(error)))
        lost = FoundCode.none(functions.keys() - codes.keys(), "nvdisasm does not print them")
        return absent.joined(lost).joined(FoundCode(codes, {}))

    def _print_codes(
        self, file: BufferedReader, functions: Mapping[str, CubinFunction]
    ) -> dict[str, Code]:
        """Return the code of ``functions``, from the cache or by nvdisasm."""
        if not functions:
            return {}
        if self._tool is None:
            raise InputError(nvdisasm.ADVICE)
        if not self._uses_cache:
            return self._disassemble(self._tool, file, functions)
        cache = CodeCache(file, f"{self._tool.version}{_mark_of(file)}")
        with cache.lock(self._tick):
            known = cache.read()
            new = {name: one for name, one in functions.items() if name not in known}
            more = self._disassemble(self._tool, file, new)
            known |= more
            if more:
                self._store(cache, known)
        return {name: known[name] for name in functions if name in known}

    def _store(self, cache: CodeCache, codes: Mapping[str, Code]) -> None:
        try:
            cache.write(codes)
        except NoCacheError as error:
            self._uncached = str(error)

    @contextmanager
    def _open_cubin(self, cubin: CubinId) -> Iterator[BufferedReader]:
        """Open the cubin; InputError where it is not there."""
        try:
            if self._cubins is None:
                raise FileNotFoundError
            file = open_bounded(self._cubins, f"{cubin.stem}.cubin", _LARGEST_CUBIN)
        except OSError:
            raise InputError(f"their cubins are not in {self._place}") from None
        with file:
            yield file

    def _disassemble(
        self,
        tool: nvdisasm.Disassembler,
        file: BufferedReader,
        functions: Mapping[str, CubinFunction],
    ) -> dict[str, Code]:
        if not functions:
            return {}
        try:
            return tool.disassemble(file, functions, self._tick, _other_owner(file))
        except OSError as error:
            raise InputError(f"nvdisasm cannot be run: {error.strerror or error}") from None


def _other_owner(cubin: BufferedReader) -> int | None:
    """The user as whom root has the cubin disassembled: what it makes of nvdisasm is his alone."""
    owner = os.fstat(cubin.fileno()).st_uid
    return owner if os.geteuid() == 0 and owner != 0 else None


def _mark_of(cubin: BufferedReader) -> str:
    """What keeps apart in the cache what somebody else could have changed while it was printed."""
    known = os.fstat(cubin.fileno())
    is_own = known.st_uid == os.geteuid() and not known.st_mode & _WRITABLE_BY_OTHERS
    return "" if is_own else f"-{known.st_uid}"
