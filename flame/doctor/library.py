"""Try the injection library in a process of its own: what it says of CUPTI and Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from flame._version import __version__
from flame.core.errors import FlameError
from flame.core.external import package_folders
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import FrameBuilder
from flame.core.readers.fdump.chunks import Chunks, DumpBytes
from flame.core.readers.fdump.folder import SUFFIX
from flame.core.readers.fdump.vocabulary import DumpVocabulary
from flame.doctor.check import Check, probe
from flame.record.environment import library_path

_CUPTI = "NVIDIA's base and runtime images have none: pip install nvidia-cuda-cupti (CUDA 13) or "
_CUPTI += "nvidia-cuda-cupti-cu12 beside flame (both: its extra cupti) or the program, or let "
_CUPTI += "FLAME_CUPTI_PATH name a libcupti.so"
_OTHER_CUPTI = "it has to be no newer than the driver, and no other tool may use it; "
_OTHER_CUPTI += "FLAME_CUPTI_PATH names another one"
_WHEELS = ("nvidia/cu*/lib/libcupti.so.*", "nvidia/cuda_cupti/lib/libcupti.so.*")
_UNTRIED = "not known without the library"


@dataclass(frozen=True)
class _Trial:
    """What the library has written: ``error``, or ``facts``."""

    error: str = ""
    facts: dict[str, str] | None = None

    def fact(self, key: str) -> str:
        return (self.facts or {}).get(key, "")


def checks() -> Iterator[Check]:
    """Check the library, CUPTI and Python frames."""
    try:
        path = library_path()
    except FlameError as error:
        what, _, fix = str(error).partition("; ")
        yield Check("library", "library", "missing", what, fix)
        yield from _untried()
        return
    trial = _try(path)
    yield _library(path, trial)
    if trial.error:
        yield from _untried()
        return
    yield _cupti(trial)
    yield _python(trial)


def _untried() -> Iterator[Check]:
    yield Check("cupti", "CUPTI", "absent", _UNTRIED)
    yield Check("python", "Python frames", "absent", _UNTRIED)


def _try(path: Path) -> _Trial:
    with TemporaryDirectory(prefix="flame-doctor-") as folder:
        result = probe("library", str(path), FLAME_DIR=folder, FLAME_PC="off", FLAME_PYTHON="1")
        if "error" in result:
            return _Trial(f"cannot be loaded: {result['error']}")
        dumps = list(Path(folder).glob(f"*{SUFFIX}"))
        if not dumps:
            return _Trial(f"wrote nothing to {folder}")
        try:
            return _Trial("", _facts(dumps[0]))
        except (FlameError, OSError) as error:
            return _Trial(f"wrote what cannot be read: {error}")


def _facts(dump: Path) -> dict[str, str]:
    """What the dump says of its process, by key."""
    with closing(DumpBytes(dump)) as data:
        chunks = Chunks(data)
        chunks.update()
        vocabulary = DumpVocabulary(FrameBuilder(), clean=False)
        vocabulary.learn(chunks.records())
        return {key: values[-1] for key, values in vocabulary.facts.items()}


def _library(path: Path, trial: _Trial) -> Check:
    if trial.error:
        fix = "FLAME_DEBUG=1 flame record -- CMD shows more; else install flame again"
        return Check("library", "library", "missing", f"{path}: {trial.error}", fix)
    version = trial.fact("library")
    if version != __version__:
        text = f"{path} is of version {version}, flame of {__version__}"
        return Check("library", "library", "limited", text, "install flame again")
    return Check("library", "library", "ok", f"{version}, {path}")


def _cupti(trial: _Trial) -> Check:
    check = partial(Check, "cupti", "CUPTI")
    status, refused = trial.fact("cupti"), trial.fact("cupti_refused")
    if status[:1].isdigit() or status.startswith("API"):
        instead = f" (instead of {refused})" if refused else ""
        return check("ok", f"{status}, {trial.fact('cupti_path')}{instead}")
    if status == "no libcupti found":
        if wheel := next(_wheels(), None):
            return check("ok", f"{wheel}: programs that load CUDA from there have it")
        return check("missing", status, _CUPTI)
    if status.startswith("/") and not trial.fact("driver"):
        return check("absent", f"works only with a driver ({status})")
    return check("missing", status, _OTHER_CUPTI)


def _wheels() -> Iterator[Path]:
    """CUPTI as NVIDIA's packages install it for this Python."""
    for folder in package_folders():
        for pattern in _WHEELS:
            yield from sorted(folder.glob(pattern), reverse=True)


def _python(trial: _Trial) -> Check:
    status = trial.fact("python")
    if status[:1].isdigit() and " " not in status:
        text = f"for this Python {status}, and all from 3.11 to 3.14"
        return Check("python", "Python frames", "ok", text)
    why = status or "the library does not see this Python"
    return Check("python", "Python frames", "limited", why, "record with CPython 3.11 to 3.14")
