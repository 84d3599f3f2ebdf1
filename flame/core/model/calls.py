"""Class CUDA and HIP API calls by what they do, from their names."""

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
