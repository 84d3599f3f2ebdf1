"""Check what holds of every input: documented errors, a time, memory, and sums that agree."""

from __future__ import annotations

import atexit
import gzip
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from flame.core.errors import FlameError, InputError
from flame.core.loading.many import load
from flame.core.model.activities import Activities, TableCut
from flame.core.model.metrics import Metric
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.options import LoadOptions
from flame.core.projection.levels import LEVELS
from tests.fuzz.target import Target
from tests.support.profiles.project_tree import project_tree

LONGEST = 10.0
"""Seconds of this process for one input."""
TIMES, CONSTANT = 12, 64 << 20
"""Memory for one input: so many times its size, and so many bytes besides."""
MOST_UNPACKED = 150


class FoundError(Exception):
    """A fault that is no exception of flame."""


def run(target: Target, data: bytes) -> None:
    """Check one input, its time and its memory too."""
    before, begin = _start_peak(), time.process_time()
    target.check(data)
    seconds = time.process_time() - begin
    if seconds > LONGEST:
        raise FoundError(f"took {seconds:.1f} s")
    grown = _peak() - before
    if grown > TIMES * target.room(data) + CONSTANT:
        raise FoundError(f"took {grown >> 20} MiB for {target.room(data):,} bytes")


def _start_peak() -> int:
    """Let the peak begin now, where the system can; return the memory in use."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(key: str) -> int:
    """A size in bytes from the status of this process; 0 where there is none."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(key)), 0)


def unpacked_size(data: bytes) -> int:
    """The size of an input that may be packed; flame refuses what unpacks to far more."""
    if data.startswith((b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")):
        return 2 * MOST_UNPACKED * len(data)
    if not data.startswith(b"\x1f\x8b"):
        return len(data)
    unpacking = zlib.decompressobj(31)
    with suppress(zlib.error):
        return len(data) + len(unpacking.decompress(data, MOST_UNPACKED * len(data)))
    return MOST_UNPACKED * len(data)


def packed(data: bytes) -> bytes:
    """``data`` as a gzip file that is the same every time."""
    return gzip.compress(data, 6, mtime=0)


@cache
def folder() -> Path:
    """A folder of this process, in memory where there is such a place."""
    shared = Path("/dev/shm")
    place = shared if os.access(shared, os.W_OK) else None
    found = Path(tempfile.mkdtemp(prefix="flame-fuzz-", dir=place))
    atexit.register(_remove, found, os.getpid())
    return found


def _remove(folder: Path, owner: int) -> None:
    """Leave the folder to the ``owner``, of which this may be a fork."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def write(name: str, data: bytes) -> Path:
    """A file of this process that holds ``data``."""
    path = folder() / name
    path.write_bytes(data)
    return path


def refusal_of(action: Callable[[], object]) -> str:
    """The line with which ``action`` ends; empty where it ends well."""
    try:
        action()
    except FlameError as error:
        line = str(error)
        if not line or line.splitlines() != [line]:
            raise FoundError(f"not one line: {line!r}") from error
        return line
    return ""


def opens_or_refuses(path: Path, options: LoadOptions | None = None) -> Profile | None:
    """Load ``path`` and check its sums; None where it is refused as is documented."""
    try:
        profile = load(path, options)
    except InputError as error:
        line = str(error)
        if line.splitlines() != [line] or not line.startswith(f"{path}: "):
            raise FoundError(f"refused in other words: {line!r}") from error
        return None
    check_sums(profile)
    return profile


def check_sums(profile: Profile) -> None:
    """Under every metric the leaves of the tree add up to the table."""
    for number, metric in enumerate(profile.metrics):
        for levels in (None, LEVELS) if not number else (None,):
            table = _table_of(profile, metric, levels)
            total = sum(metric.values(table).tolist())
            tree = project_tree(profile, levels, metric=metric.key)
            if sum_of_leaves(tree) != total or int(tree.count[0]) != len(table):
                found = f"{sum_of_leaves(tree)} in {int(tree.count[0])}"
                raise FoundError(f"{metric.key}: {found}, table {total} in {len(table)}")


def _table_of(profile: Profile, metric: Metric, levels: object) -> Activities:
    """The table that is projected: of memory that of one device, or of all where they are told."""
    if levels is not None and profile.memory is not None:
        profile = profile.within(TableCut((), tuple(range(len(profile.devices)))))
    return profile.table(metric)


def sum_of_leaves(tree: StackTree) -> int:
    """What the tree's own values add up to, which is its total; none is negative."""
    own = tree.own.tolist()
    if sum(own) != int(tree.total[0]) or min(own) < 0:
        raise FoundError(f"leaves {sum(own)}, total {int(tree.total[0])}, least {min(own)}")
    return sum(own)
