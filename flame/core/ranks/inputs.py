"""Find what is to be read of ranks: files, patterns, folders of dumps, summaries."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import NamedTuple

from flame.core.errors import InputError, UsageError
from flame.core.fetching.given_names import is_pattern
from flame.core.lazy_regex import lazy_regex
from flame.core.loading.search import describe_folder
from flame.core.rank_summary.summary import LostRank, RankSummary, empty_summary
from flame.core.rank_summary.summary_file import SUFFIX, is_summary, unpack_summary
from flame.core.rank_summary.summary_head import origin_in
from flame.core.ranks.job import RankFile, place_of, reason_of
from flame.core.ranks.rank_file import has_fresh_summary, head_of, origin_of, summary_beside
from flame.core.readers.fdump.folder import SUFFIX as DUMP
from flame.core.readers.fdump.folder import is_folder, list_dumps
from flame.core.units import format_counted

_VARIABLE = lazy_regex(r"%q\{([^{}]*)\}")
_ENDS = frozenset((".sqlite", ".nsys-rep", ".json", ".gz", ".flame"))


class RankInputs(NamedTuple):
    """Hold the traces to read, the summaries that there are, and what to say of both.

    ``merged`` names the files of the summaries, without those that cannot be read, which are lost
    in ``summaries``.
    """

    files: tuple[RankFile, ...]
    summaries: tuple[RankSummary, ...]
    merged: tuple[str, ...]
    notes: tuple[str, ...]


def fill_in(word: str) -> str:
    """Replace each ``%q{NAME}`` by that variable of the environment, as Nsight Systems does.

    Raises InputError where there is none, UsageError for an empty word.
    """
    if not word:
        raise UsageError("an empty name: name a file")

    def value(match: object) -> str:
        name = match[1]  # type: ignore[index]
        if name not in os.environ:
            raise InputError(f"{word}: there is no variable {name} in the environment")
        return os.environ[name]

    return _VARIABLE.sub(value, word)


def list_paths(words: Iterable[str]) -> list[str]:
    """List the files that ``words`` name, each once; a file that is not there is one of them.

    Raises InputError for a pattern that matches nothing and a folder without dumps.
    """
    found: dict[str, str] = {}
    for word in words:
        for path in _expand(word):
            found.setdefault(place_of(path), path)
    return list(found.values())


def _expand(word: str) -> Iterator[str]:
    paths = [word] if os.path.lexists(word) or not is_pattern(word) else _matches(word)
    for path in paths:
        if is_folder(Path(path)):
            yield from _dumps(Path(path))
        else:
            yield _dump_of(path)


def _matches(pattern: str) -> list[str]:
    paths = sorted(glob(pattern, recursive=True))  # noqa: PTH207 (Path.glob takes none with a root)
    if not paths:
        raise InputError(f"{pattern}: no file here matches that pattern")
    return paths


def _dump_of(path: str) -> str:
    """Return the dump that ``path`` is the summary of, if it is there, else ``path``."""
    if path.endswith(SUFFIX) and (dump := Path(path).with_suffix(DUMP)).is_file():
        return str(dump) if origin_of(Path(path)) else path
    return path


def _dumps(folder: Path) -> list[str]:
    """List the dumps in a recording, and the summaries whose dumps are gone."""
    try:
        dumps = list(list_dumps(folder))
        alone = sorted(
            one for one in folder.glob(f"*{SUFFIX}") if one.with_suffix(DUMP) not in dumps
        )
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from None
    kept = [one for one in alone if origin_of(one)]
    if not dumps and not kept:
        raise InputError(f"{folder}: {_instead_of(folder)}")
    return [str(one) for one in (*(dump for dump in dumps if not _is_empty(dump)), *kept)]


def _instead_of(folder: Path) -> str:
    """Say how to name what is in a folder without dumps: by the ending that most traces there have.

    Or which traces there are.
    """
    ends = Counter(one.suffix for one in folder.iterdir() if one.suffix in _ENDS)
    if not ends:
        return describe_folder(folder)
    pattern = folder / f"*{ends.most_common(1)[0][0]}"
    return f"is a folder with no dump (*{DUMP}) in it: name what is in it: '{pattern}'"


def _is_empty(dump: Path) -> bool:
    from flame.core.readers.fdump.tally import is_empty_dump

    try:
        return is_empty_dump(dump)
    except InputError:
        return False  # Its reader says why.


def read_inputs(paths: Sequence[str], iteration: str = "") -> RankInputs:
    """Read the summaries among ``paths``; the rest are traces, without those that these have.

    What lies beside a dump is of use where no ``iteration`` is asked for.
    """
    summaries = {path: _read_summary(path) for path in paths if _is_summary(path)}
    found = {path: one for path, one in summaries.items() if isinstance(one, RankSummary)}
    kept, notes = _without_copies(found)
    there = {place_of(info.path) for one in kept for info in one.info}
    traces = [path for path in paths if path not in summaries]
    left = [path for path in traces if place_of(_source_of(path)) not in there]
    if len(left) < len(traces):
        number = len(traces) - len(left)
        notes.append(f"{number} of the files are in the summaries already: not read again")
    beside = {} if iteration else {path: _summary_of(path) for path in left}
    files = [RankFile(path, _size(beside.get(path) or path)) for path in left]
    notes += _notes_on_kept(beside)
    lost = empty_summary(tuple(one for one in summaries.values() if isinstance(one, LostRank)))
    return RankInputs(
        tuple(files), (*kept, lost) if lost.lost else tuple(kept), tuple(found), tuple(notes)
    )


def _source_of(path: str) -> str:
    """Return the dump that was, where ``path`` is what is left of it."""
    return str(Path(path).with_suffix(DUMP)) if path.endswith(SUFFIX) else path


def _summary_of(path: str) -> str | None:
    """Return the summary beside a dump, '' of one that is not of it as it is; None without one."""
    if not path.endswith(DUMP):
        return None
    is_fresh = has_fresh_summary(Path(path))
    return None if is_fresh is None else str(summary_beside(Path(path))) if is_fresh else ""


def _notes_on_kept(beside: Mapping[str, str | None]) -> Iterator[str]:
    fresh = sum(bool(one) for one in beside.values())
    if fresh:
        number = format_counted(fresh, "dump is", "dumps are")
        yield f"{number} read from what flame record has summed up beside"
    for path, one in beside.items():
        if one == "":
            yield f"{summary_beside(Path(path))}: is not of the dump as it is: the dump is read"


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except (OSError, ValueError):
        return 0


def _is_summary(path: str) -> bool:
    """Whether it is a summary of ranks, and not what is kept of one dump, which is read as that."""
    head = head_of(Path(path))
    return is_summary(head) and not origin_in(head)


def _read_summary(path: str) -> RankSummary | LostRank:
    try:
        return unpack_summary(Path(path).read_bytes(), path)
    except InputError as error:
        return LostRank(path, reason_of(error, Path(path)))
    except OSError as error:
        return LostRank(path, error.strerror or str(error))


def _without_copies(summaries: Mapping[str, RankSummary]) -> tuple[list[RankSummary], list[str]]:
    """Leave out summaries all of whose ranks others have; InputError where these have some of them.

    What such a one lacks is still told, unless another has it.
    """
    kept, notes = list[RankSummary](), list[str]()
    there = dict[tuple[int, str], str]()
    for path, one in sorted(summaries.items(), key=lambda pair: -len(pair[1])):
        ranks = {(info.rank, info.path) for info in one.info}
        common = ranks & there.keys()
        if common and common != ranks:
            rank = min(common)
            raise InputError(f"{path}: has rank {rank[0]} ({rank[1]}), and so has {there[rank]}")
        if common:
            notes.append(f"{path}: all its ranks are in {there[min(common)]}: left out")
        there |= dict.fromkeys(ranks, path)
        kept.append(empty_summary(one.lost) if common else one)
    return kept, notes
