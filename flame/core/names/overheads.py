"""Tell from the names of a profiler's overhead what it holds up."""

from __future__ import annotations

import re

from flame.core.lazy_regex import lazy_regex

# Names have changed over the years: `CUPTI: Buffer flush`, `CUPTI Buffer flush`. PyTorch has its
# own: `Buffer Flush`, `Driver Compiler`.
_NOT_THE_PROFILER = lazy_regex(
    r"^dlopen|^dlclose|lazy function loading|module loading|command buffer full|driver compiler",
    re.IGNORECASE,
)
_WHOLE_PROCESS = lazy_regex(
    r"profiling (?:data )?(?:flush|stop)|profiling overhead|buffer flush", re.IGNORECASE
)


def is_of_profiler(name: str) -> bool:
    """Tell whether overhead is the profiler's, and not loading, or a launch queue that is full."""
    return not _NOT_THE_PROFILER.search(name)


def holds_process(name: str) -> bool:
    """Tell whether all threads of a process wait meanwhile: what flushes or stops."""
    return bool(_WHOLE_PROCESS.search(name))
