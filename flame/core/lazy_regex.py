"""Compile regular expressions when they are first used: most are not, in any one run."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


def lazy_regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what behaves as ``re.compile(pattern, flags)``, and is that from its first use on."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))


class _LazyPattern:
    def __init__(self, pattern: Any, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        # Kept, so that a method is as fast as that of a compiled pattern the next time.
        value = self.__dict__[name] = getattr(re.compile(*self._source), name)
        return value
