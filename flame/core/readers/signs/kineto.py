"""Recognize Chrome traces, without what reads those of the PyTorch profiler."""

from __future__ import annotations

from flame.core.lazy_regex import lazy_regex

_HEAD = lazy_regex(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[)")
_SIGNS = lazy_regex(
    rb'"(?:traceEvents|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:|"ph"\s*:\s*"'
)


def is_chrome_trace(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` (unpacked) is a Chrome trace."""
    return bool(_HEAD.match(head) and _SIGNS.search(head))
