"""Files that flame does not read are named where they can be, with what to do about them."""

from __future__ import annotations

import random

import pytest

from flame.core.readers.unsupported import unsupported_advice

KNOWN = {
    "kept base": (b'{"flame_base":1,"version"', "flame diff FILE TRACE"),
    "zip": (b"PK\x03\x04\x14\0", "zip archive: unpack"),
    "zstd of zstd": (b"\x28\xb5\x2f\xfd\x24", "packed twice: unpack it first (unzstd)"),
    "xz of xz": (b"\xfd7zXZ\0\0", "packed twice: unpack it first (unxz)"),
    "packed report": (b"NVIDIA Tegra Profiler Report 1", "a packed report of Nsight Systems"),
    "packed page": (b"NVR\0\1", "a packed report of Nsight Compute"),
    "bzip2": (b"BZh91AY&SY\x01", "bunzip2"),
    "perf.data": (b"PERFILE2h\0\0\0", "perf script -i FILE | stackcollapse-perf.pl"),
    "flight recording": (b"FLR\0\0\x02", "jfrconv"),
    ".NET": (b"Nettrace\x14\0\0\0!FastSerialization.1", "dotnet-trace convert"),
    "CPU profile": (b'{"nodes":[{"id":1,"callFrame":{},"hitCount":0', "Chrome CPU profile"),
    "heap profile": (b'{"head":{"callFrame":{},"selfSize":0', "Chrome heap profile"),
    "DevTools": (b'{"metadata": {\n "source": "DevTools",', "Chrome DevTools timeline"),
    "old DevTools": (b'[{"pid":1,"ph":"X","cat":"toplevel"', "Chrome DevTools timeline"),
    "trace events": (b'\n[ {"name": "a", "ph": "B"', "Chrome trace event file"),
    "no events": (b'{"traceEvents": []}', "Chrome trace event file"),
    "Firefox": (b'{"meta":{"preprocessedProfileVersion":47', "Firefox profile"),
    "JSON": (b'\xef\xbb\xbf {"a": 1}', "JSON, but not a trace flame knows"),
    "table": (b'{"flame_top": 1, "title": "x"', "a table of flame top, which has no stacks"),
    "picture": (b'<?xml version="1.0"?>\n<svg version="1.1"', "folded stacks that it was drawn"),
    "callgrind": (b"version: 1\nevents: Ir\n\nfl=a.c\nfn=main\n16 20\n", "callgrind"),
    "perf script": (b"python 12/13 [002] 20.377: 1001 cpu-clock:u: \n", "perf script output"),
    "perf script, no CPU": (
        b"# a\nmy app    10 19.7:    cycles:\n\t6f3 main",
        "perf script output",
    ),
}


@pytest.mark.parametrize("kind", KNOWN)
def test_a_known_format_is_named_with_what_to_do(kind: str) -> None:
    head, expected = KNOWN[kind]
    assert expected in unsupported_advice(head, "file")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"Traceback (most recent call last):\n",
        b"12:30:01.5 [3] 1.5: started\n",
        b"events: none\n",
        random.Random(1).randbytes(1 << 16),
    ],
)
def test_anything_else_is_told_what_flame_reads(head: bytes) -> None:
    text = unsupported_advice(head, "file.txt")
    assert text.startswith("not a trace flame knows; flame reads its own recordings, Nsight")


def test_one_is_known_by_its_name_alone() -> None:
    assert "QdstrmImporter" in unsupported_advice(b"", "a.qdstrm")


@pytest.mark.parametrize(
    "piece", [b"events: \n", b'{"ph"', b'{"callFrame": {', b"a 1 ", b"a 1/1 [1] 1.1: ", b"[", b" "]
)
def test_a_head_of_almost_signs_takes_no_time(piece: bytes) -> None:
    # A search that began anew at each of them would take minutes.
    assert "\n" not in unsupported_advice(piece * ((1 << 16) // len(piece)), "file")
