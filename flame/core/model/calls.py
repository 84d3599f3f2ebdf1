"""Class CUDA and HIP API calls by their names, and name what else GPUs and threads wait for."""

from __future__ import annotations

import re
from enum import IntEnum

from flame.core.lazy_regex import lazy_regex


class CallClass(IntEnum):
    """Name what an API call does. The numbers follow those of `Kind`, to share a column with it.

    Only ``SYNC`` blocks until a GPU has done its work, and is for nothing else; what polls, or
    makes a stream wait, is ``OTHER``.
    """

    LAUNCH = 32
    SYNC = 33
    COPY = 34
    ALLOC = 35
    OTHER = 36


_PATTERNS = {
    CallClass.SYNC: r"(cuda|cu|hip)(Thread|Device|Ctx|Stream|Event)Synchronize(_v\d+)?",
    CallClass.LAUNCH: r"(cuda|cu|hip)\w*Launch\w*",
    CallClass.COPY: r"(cuda|cu|hip)Mem(cpy|set|Prefetch)\w*",
    CallClass.ALLOC: r"(cuda|cu|hip)(?!Graph|Binary)("
    r"\w*(Malloc|Free|HostAlloc|HostRegister|HostUnregister)\w*"
    r"|Mem(Host)?(Alloc|Create|Map|Unmap|Release|Register)\w*)",
}
_STREAM_SUFFIX = lazy_regex(r"_pt(sz|ds)$")


def call_class(name: str) -> CallClass:
    """Class the API call ``name``; a suffix of a default stream per thread does not count."""
    bare = _STREAM_SUFFIX.sub("", name)
    return next((key for key, one in _PATTERNS.items() if re.fullmatch(one, bare)), CallClass.OTHER)


class IdleCause(IntEnum):
    """Name what a part of an idle gap passed with: of the thread that launched what ended it.

    ``AFTER_LAUNCH`` is what had been launched and had not begun, ``IN_LAUNCH`` the launching call;
    before that the call that was open. Where none was it is ``GARBAGE_COLLECTION``, else ``GIL``,
    waiting for that, where the trace tells of these, else ``HOST_CODE``. ``UNKNOWN`` are gaps
    before work of which no launch was recorded.
    """

    PROFILER = 0
    UNKNOWN = 1
    AFTER_LAUNCH = 2
    IN_LAUNCH = 3
    SYNC = 4
    ALLOC = 5
    COPY_CALL = 6
    LAUNCH_CALL = 7
    OTHER_CALL = 8
    HOST_CODE = 9
    GARBAGE_COLLECTION = 10
    GIL = 11

    @property
    def title(self) -> str:
        """Spell the cause as tables show it."""
        if self is IdleCause.GIL:
            return "waiting for the GIL"
        return self.name.lower().replace("_", " ")


class StateKind(IntEnum):
    """Name what a thread was held up by, or that it held the GIL.

    The numbers follow those of `CallClass`, to share a column with it.
    """

    COLLECTION = 40
    GIL_HELD = 41
    GIL_WAITING = 42
    LOADING = 43
    PROFILER = 44
