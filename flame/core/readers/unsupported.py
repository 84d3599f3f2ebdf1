"""Advise on files that flame does not read: a line for each format that is known by sight.

Most formats are those of https://github.com/jlfwong/speedscope/tree/main/src/import.
"""

from __future__ import annotations

import re
from typing import NamedTuple

READS = (
    "flame reads its own recordings, Nsight Systems reports and exports, PyTorch profiler traces, "
    "folded stacks, speedscope, pprof and Triton Proton files, and PC samples of Nsight Compute"
)
_BY_SPEEDSCOPE = "open it at https://www.speedscope.app and save it there, flame reads that"


class _UnsupportedFormat(NamedTuple):
    """A format: what its files have in their beginning, all of it, and what to do with them."""

    advice: str
    signs: tuple[re.Pattern[bytes], ...]


def _format(advice: str, *signs: bytes) -> _UnsupportedFormat:
    return _UnsupportedFormat(advice, tuple(re.compile(sign, re.MULTILINE) for sign in signs))


_JSON = rb"\A(?:\xef\xbb\xbf)?\s*[\[{]"

# Inside of a JSON text quotes have a backslash before them, so that `"name":` is always a key.
_FORMATS = (
    _format(
        "what flame diff --keep-base has kept of a run: name it there as the base: "
        "flame diff FILE TRACE",
        rb'\A\{"flame_base":',
    ),
    _format("packed twice: unpack it first (gunzip)", rb"\A\x1f\x8b"),
    _format("packed twice: unpack it first (unzstd)", rb"\A\x28\xb5\x2f\xfd"),
    _format("packed twice: unpack it first (unxz)", rb"\A\xfd7zXZ\x00"),
    _format("a packed report of Nsight Systems: unpack it first", rb"\ANVIDIA Tegra Profiler"),
    _format("a packed report of Nsight Compute: unpack it first", rb"\ANVR\x00"),
    _format("a zip archive: unpack it first", rb"\APK\x03\x04"),
    _format("compressed by bzip2: unpack it first (bunzip2)", rb"\ABZh[1-9]1AY&SY"),
    _format(
        "a recording of Linux perf: perf script -i FILE | stackcollapse-perf.pl > FILE.folded",
        rb"\APERFILE2",
    ),
    _format("a Java flight recording: fold it with jfrconv (async-profiler)", rb"\AFLR\x00"),
    _format("a .NET trace: dotnet-trace convert --format speedscope FILE", rb"\ANettrace"),
    _format(
        f"a Chrome heap profile (.heapprofile): {_BY_SPEEDSCOPE}",
        _JSON,
        rb'"callFrame"\s*:\s*\{',
        rb'"selfSize"\s*:',
    ),
    _format(
        f"a Chrome DevTools timeline, which has no GPU work: {_BY_SPEEDSCOPE}",
        _JSON,
        rb'"(?:cat|source)"\s*:\s*"(?:toplevel|DevTools|devtools\.timeline)"',
    ),
    _format(
        f"a Chrome trace event file without PyTorch profiler events: {_BY_SPEEDSCOPE}",
        _JSON,
        rb'"ph"\s*:|"traceEvents"\s*:',
    ),
    _format(
        f"a Chrome CPU profile (.cpuprofile): {_BY_SPEEDSCOPE}",
        _JSON,
        rb'"callFrame"\s*:\s*\{',
        rb'"(?:hitCount|timeDeltas|positionTicks)"\s*:',
    ),
    _format(f"a Firefox profile: {_BY_SPEEDSCOPE}", _JSON, rb'"preprocessedProfileVersion"\s*:'),
    _format("a table of flame top, which has no stacks: open its trace", rb'\A\{"flame_top":'),
    _format(f"JSON, but not a trace flame knows; {READS}", _JSON),
    _format("a picture: open the folded stacks that it was drawn from", rb"<svg\b"),
    _format(
        f"callgrind output, which has calls but no stacks: {_BY_SPEEDSCOPE}",
        rb"^events: ",
        rb"^fn=",
    ),
    _format(
        "linux perf script output: fold it with stackcollapse-perf.pl or inferno-collapse-perf",
        rb"^\S[^\n]{0,200}?[ \t]\d{1,9}(?:/\d{1,9})?[ \t]+(?:\[\d{1,5}\][ \t]+)?"
        rb"\d{1,12}\.\d{1,9}:[ \t]+(?:\d{1,19}[ \t]+)?[\w-]+:",
    ),
)
"""The first that fits is it."""

_BY_SUFFIX = {
    ".qdstrm": "a recording that Nsight Systems has not converted: QdstrmImporter -i FILE",
}


def unsupported_advice(head: bytes, name: str) -> str:
    """Say what the file ``name``, which begins with ``head``, is and what to do with it.

    One line, for a file in none of the formats that flame reads; ``head`` is unpacked where the
    file is packed.
    """
    for format_ in _FORMATS:
        if all(sign.search(head) for sign in format_.signs):
            return format_.advice
    by_suffix = (text for suffix, text in _BY_SUFFIX.items() if name.endswith(suffix))
    return next(by_suffix, f"not a trace flame knows; {READS}")
