"""Read metadata of a dump: the process, its threads, GPUs, versions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import FrameBuilder
from flame.core.model.meta import Device, Meta, Process
from flame.core.readers.fdump.chunks import Chunks, DumpBytes, prefix_errors
from flame.core.readers.fdump.layout import DumpHeader
from flame.core.readers.fdump.vocabulary import DEVICE, DEVICE_UUID, THREAD, DumpVocabulary

_LONGEST_NAME = 15  # TASK_COMM_LEN of Linux, less the byte at its end
_PYTHON = lazy_regex(r"python[\d.]*")
_RANK = lazy_regex(r"[0-9]{1,9}")
_BY_SYSTEM = 1  # scope of a thread's name in dump.h
_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
_RECORDED = "recorded"  # of calls that launch nothing
# `3.11.7`, `3.11.7: no frames: why not`, `API 18`, `not found`
_VERSION = lazy_regex(r"((?:API )?[0-9]+(?:\.[0-9]+)*(?: \([\w-]+\))?)(?:: |\Z)")


def read_meta(header: DumpHeader, vocabulary: DumpVocabulary, path: str) -> Meta:
    """Read versions, the rank, what is missing and why, and when the recording began."""
    fact = vocabulary.last_fact
    cupti, no_cupti = _version(vocabulary, "cupti")
    python, no_python = _version(vocabulary, "python")
    if not cupti and not no_cupti:
        no_cupti = "the process did not start CUDA"
    missing = {"cupti": no_cupti, "python": no_python}
    if cupti and fact("calls") != _RECORDED:
        missing["calls"] = fact("calls") or "by an older flame"
    parts = (("flame", fact("library")), ("CUPTI", cupti), ("Python", python))
    name = process_name(vocabulary)
    offset = header.start_unix - header.start_monotonic
    return Meta(
        path=path,
        format="fdump",
        origin=header.start_unix,
        rank=_number(fact("rank")),
        label=f"{name} [{header.pid}]" if name else f"[{header.pid}]",
        clock=f"{fact('boot_id')} {offset}" if fact("boot_id") else "",
        host=fact("host"),
        producer=", ".join(f"{title} {version}" for title, version in parts if version),
        schema_version=str(header.version),
        synthetic=fact("synthetic") == "yes",
        options={key: why for key, why in missing.items() if why},
        counters=_counters(fact("counters")),
    )


def _counters(text: str) -> dict[str, int]:
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, _Count])
    except (msgspec.MsgspecError, UnicodeError):
        return {}


def _version(vocabulary: DumpVocabulary, key: str) -> tuple[str, str]:
    """Return the version of a part of the process, and why it recorded nothing, if known."""
    version = reason = ""
    for text in vocabulary.facts.get(key, ()):
        match = _VERSION.match(text)
        version = match[1] if match else version
        reason = (text[match.end() :] if match else text) or reason
    return version, reason.removeprefix("no frames: ")


def build_process(header: DumpHeader, vocabulary: DumpVocabulary, source: int) -> Process:
    """Describe the process that wrote the dump with the number ``source``."""
    return Process(header.pid & 0x7FFFFFFF, process_name(vocabulary), source)


def process_name(vocabulary: DumpVocabulary) -> str:
    """Return what the process calls itself, uncut; for a Python process its script or module."""
    name, (first, *words) = (
        vocabulary.last_fact("process"),
        vocabulary.last_fact("command").split() or [""],
    )
    if _PYTHON.fullmatch(name):
        return _script_name(words) or name
    if len(name) < _LONGEST_NAME:
        return name
    # The system has cut it.
    paths = (vocabulary.last_fact("executable"), first, *words[:1])
    return next(
        (file_name for file_name in map(_file_name, paths) if file_name.startswith(name)), name
    )


def _script_name(words: Sequence[str]) -> str:
    """Return the script or module that ``python WORDS`` runs; empty for ``-c``."""
    for at, word in enumerate(words):
        if word == "-m":
            return "".join(words[at + 1 : at + 2])
        if word == "-c":
            return ""
        if word.endswith(".py"):
            return _file_name(word)
    return ""


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def thread_name(header: DumpHeader, vocabulary: DumpVocabulary, tid: int) -> str:
    """Return the name that the program gave a thread, else the system; "main" for the first."""
    own = vocabulary.name_of(THREAD, tid) or vocabulary.name_of(THREAD, tid, _BY_SYSTEM)
    return own or ("main" if tid == header.pid else "")


def build_device(vocabulary: DumpVocabulary, number: int, source: int) -> Device:
    """Describe a GPU by the process's CUDA ordinal."""
    uuid = vocabulary.name_of(DEVICE_UUID, number)
    return Device(number, vocabulary.name_of(DEVICE, number), source, uuid=uuid)


class JobPlace(NamedTuple):
    """Say which rank of how many a process was, as its environment told; None where it did not."""

    rank: int | None
    ranks: int | None


def read_job_place(dump: Path) -> JobPlace:
    """Read which rank wrote a dump; raises InputError where it is none."""
    with prefix_errors(dump), closing(DumpBytes(dump)) as data:
        chunks = Chunks(data)
        chunks.update(beyond_tail=True)
        vocabulary = DumpVocabulary(FrameBuilder(), clean=False)
        vocabulary.learn_facts(chunks.records())
    return JobPlace(*map(_number, map(vocabulary.last_fact, ("rank", "world_size"))))


def _number(text: str) -> int | None:
    return int(text) if _RANK.fullmatch(text) else None
