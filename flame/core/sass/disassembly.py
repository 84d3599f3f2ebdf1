"""Find the code of sampled functions: kept beside their cubins, in the cache, or by nvdisasm."""

from __future__ import annotations

import os
import time
from collections import Counter
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
from flame.core.sass.code_files import open_bounded, read_codes, write_codes
from flame.core.sass.cubin import find_functions
from flame.core.units import format_counted

CUBINS = "cubins"
"""The folder beside the dumps of a recording that has the cubins, and their instructions."""

_LARGEST_CUBIN = 1 << 31  # kMaxSaved in inject/sampling/cubins.cpp
_FILE = lazy_regex(r"[0-9a-f]{16}\.(cubin|sass)")
_PATIENCE = 600.0
"""Seconds for all cubins together."""
_MOST_REASONS = 3

WantedFunctions = Mapping[int, AbstractSet[str]]
"""Names of functions by the checksum of the cubin they are of; 0: that was not recorded."""


def find_codes(
    folder: Path, wanted: WantedFunctions, progress: Progress
) -> tuple[dict[tuple[int, str], Code], list[str]]:
    """Find the code of the ``wanted`` functions, whose dumps lie in ``folder``.

    By checksum and name, where it is known; and what is to be said of the others.
    """
    codes: dict[tuple[int, str], Code] = {}
    with _open_folder(folder / CUBINS) as cubins:
        search = _CodeSearch(folder / CUBINS, cubins, len(wanted), progress)
        for crc, names in wanted.items():
            codes |= {(crc, name): code for name, code in search.codes(crc, names).items()}
    return codes, list(search.warnings())


def store_codes(folder: Path, wanted: WantedFunctions, progress: Progress) -> list[str]:
    """Write the code of the ``wanted`` functions beside their cubins; return warnings on others.

    Whoever opens the recording then needs no nvdisasm. Raises OSError where nothing can be written.
    """
    with _open_folder(folder / CUBINS) as cubins:
        search = _CodeSearch(folder / CUBINS, cubins, len(wanted), progress)
        for crc, names in wanted.items():
            known = {} if cubins is None else read_codes(cubins, _stored_name(crc))
            more = search.codes(crc, names - known.keys())
            if more and cubins is not None:
                write_codes(cubins, _stored_name(crc), search.version, known | more)
    return list(search.warnings())


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


def _stored_name(crc: int) -> str:
    return f"{crc:016x}.sass"


class _CodeSearch:
    """Finds code in a folder, open as ``cubins``; ``version`` is that of nvdisasm."""

    def __init__(self, place: Path, cubins: int | None, expected: int, progress: Progress) -> None:
        self._place = place
        self._cubins = cubins
        self._expected = expected
        self._done = 0
        self._progress = progress
        self._due = time.monotonic() + _PATIENCE
        self._missing: Counter[str] = Counter()
        self._uncached = ""

    def codes(self, crc: int, names: AbstractSet[str]) -> dict[str, Code]:
        """Return the code of some functions of a cubin, as far as it is known."""
        self._report_progress()
        codes = {} if self._cubins is None else read_codes(self._cubins, _stored_name(crc))
        codes = {name: codes[name] for name in names & codes.keys()}
        if rest := names - codes.keys():
            try:
                codes |= self._codes_of_cubin(crc, rest)
            except InputError as error:
                self._missing[str(error)] += len(rest)
        self._done += 1
        return codes

    def warnings(self) -> Iterator[str]:
        """Yield why there is no code, and of how many functions; and why it is not kept."""
        reasons = self._missing.most_common()
        for reason, count in reasons[:_MOST_REASONS]:
            yield f"{_instructions_of(count)} have no text: {reason}"
        if rest := sum(count for _, count in reasons[_MOST_REASONS:]):
            yield f"{_instructions_of(rest)} have no text, for other reasons"
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
            raise InputError(f"all of it takes longer than {_PATIENCE:.0f} s")

    def _codes_of_cubin(self, crc: int, names: AbstractSet[str]) -> dict[str, Code]:
        with self._open_cubin(crc) as cubin:
            if self._tool is None:
                raise InputError(nvdisasm.ADVICE)
            cache = CodeCache(cubin, f"{self._tool.version}{_mark_of(_other_owner(cubin))}")
            with cache.lock(self._tick):
                known = cache.read()
                more = self._disassemble(crc, cubin, names - known.keys())
                known |= more
                if more:
                    self._store(cache, known)
        if lost := names - known.keys():
            self._missing["they are not in the cubin that they were loaded from"] += len(lost)
        return {name: known[name] for name in names & known.keys()}

    def _store(self, cache: CodeCache, codes: Mapping[str, Code]) -> None:
        try:
            cache.write(codes)
        except NoCacheError as error:
            self._uncached = str(error)

    @contextmanager
    def _open_cubin(self, crc: int) -> Iterator[BufferedReader]:
        """Open the cubin; InputError where it is not there."""
        if not crc:
            raise InputError("which cubin they are of was not recorded")
        try:
            if self._cubins is None:
                raise FileNotFoundError
            file = open_bounded(self._cubins, f"{crc:016x}.cubin", _LARGEST_CUBIN)
        except OSError:
            raise InputError(f"their cubins are not in {self._place}") from None
        with file:
            yield file

    def _disassemble(
        self, crc: int, cubin: BufferedReader, names: AbstractSet[str]
    ) -> dict[str, Code]:
        if not names or self._tool is None:
            return {}
        functions = find_functions(cubin.fileno(), sorted(names), self._tick)
        path = self._place / f"{crc:016x}.cubin"
        if not functions:
            return {}
        try:
            return self._tool.disassemble(path, functions, self._tick, _other_owner(cubin))
        except OSError as error:
            raise InputError(f"nvdisasm cannot be run: {error.strerror or error}") from None


def _other_owner(cubin: BufferedReader) -> int | None:
    """The user as whom root has the cubin disassembled: what it makes of nvdisasm is his alone."""
    owner = os.fstat(cubin.fileno()).st_uid
    return owner if os.geteuid() == 0 and owner != 0 else None


def _mark_of(user: int | None) -> str:
    """What keeps apart in the cache what a user could have changed while it was printed."""
    return "" if user is None else f"-{user}"


def _instructions_of(functions: int) -> str:
    return f"the instructions of {format_counted(functions, 'function', 'functions')}"
