"""Traces and stacks that are text, whole, damaged, odd, or made to fill all memory."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.hostile.bad_files import Maker, content
from tests.support.writers.kinetofile import KinetoFile
from tests.support.writers.speedscopefile import document, evented, sampled

Json = Any


def _trace() -> bytes:
    """A step of a training loop: 12 kernels of 5 ns, launched by operators in a Python call."""
    file = KinetoFile()
    file.named("process_name", "python")
    file.device(0, "NVIDIA H100")
    file.annotation("ProfilerStep#3", 0, 9_000)
    file.python("train.py(7): step", 10, 8_900, call=1)
    for at in range(0, 6_000, 500):
        number = at // 500 + 1
        file.op(f"aten::op{number % 4}", at + 100, at + 300, Sequence_number=number)
        file.launch(number, (at + 150, at + 200), (at + 400, at + 405), f"kernel{number % 3}")
    file.gpu_annotation("ProfilerStep#3", 300, 7_000)
    file.memcpy(6_500, 6_600, 13)
    return file.text().encode()


def _proton() -> bytes:
    def node(name: str, children: list[Json], **metrics: Json) -> Json:
        spelled = {"time (ns)" if key == "time" else key: one for key, one in metrics.items()}
        return {"children": children, "frame": {"name": name}, "metrics": spelled}

    kernels = [
        node("gemm", [], count=2, device_id="0", device_type="CUDA", time=30, bytes=1.5),
        node("_Z3addPf", [], count=1, device_id="1", device_type="CUDA", time=12),
    ]
    root = node("ROOT", [node("model.py:forward@3", kernels), node("scope", [], cycles=9)])
    return json.dumps([root, {"CUDA": {"0": {"arch": "90"}}}]).encode()


def _speedscope() -> bytes:
    opened = evented(("O", 0, 0), ("O", 1, 2), ("C", 1, 5), ("C", 0, 9), name="second")
    return document(sampled([[0, 1], [0], [0, 1, 2]], [1.5, 2, 0]), opened)


WHOLE: dict[str, bytes] = {
    "kineto": _trace(),
    "proton": _proton(),
    "speedscope": _speedscope(),
    "folded": b"# comment\nmain;work (app.py:12);multiply 30\nmain;wait 10.5\nall 2\n",
    "differential": b"main;a 3 4\nmain;b 5 6\nmain;c 1 0\n",
}
"""One small file of each format."""

_ODD: tuple[Callable[[], Json], ...] = (
    *(lambda value=value: value for value in (0, -1, 2**31, 2**53 + 1, 2**63, -(2**63), 10**30)),
    *(lambda value=value: value for value in (1e308, -1e308, 1e-300, 0.1, 1.7e15 + 0.123)),
    *(lambda value=value: value for value in (float("nan"), float("inf"), None, True, False)),
    *(lambda value=value: value for value in ("", "7", "nan", "stream 7", ";", "all", "ROOT")),
    *(lambda value=value: value for value in ("\0", "\ud800", "\u202ea", "\x1b[2J", "a\nb")),
    *(lambda value=value: value for value in ("[red]x[/]", "x" * 100_000, "_Z" + "N" * 3_000)),
    list,
    dict,
    lambda: [[]],
    lambda: [{}],
    lambda: [1, 2, 3],
)
_BITS = (b"\0", b"\xff", b"\r\n", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b"NaN", b"1e999", b"-")
_MORE = (b";", b" ", b"9" * 50, b"\xed\xa0\x80", b"\\ud800", b"x" * 50_000, b'{"ph":"X",')


def spoilt(data: bytes, seed: int) -> bytes:
    """``data`` with values or bytes changed, cut off, or badly compressed."""
    draw = random.Random(seed)
    is_json = data[:1] in b"[{"
    changed = _values_changed(data, draw) if is_json and seed % 3 else _bytes_changed(data, draw)
    if seed % 5:
        return changed
    packed = bytearray(gzip.compress(changed, 1))
    if draw.random() < 0.5:
        packed[draw.randrange(len(packed))] ^= 1 << draw.randrange(8)
    return bytes(packed[: draw.randrange(len(packed) + 1)] if draw.random() < 0.5 else packed)


def _values_changed(data: bytes, draw: random.Random) -> bytes:
    whole = json.loads(data)
    for _ in range(draw.choice([1, 1, 2, 9])):
        places = list(_places(whole))
        if not places:
            break
        holder, key = draw.choice(places)
        if draw.random() < 0.8:
            holder[key] = draw.choice(_ODD)()
        elif isinstance(holder, dict):
            del holder[key]
        else:
            holder.insert(key, holder[draw.randrange(len(holder))])
    return json.dumps(whole, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass")


def _places(value: Json) -> Iterator[tuple[Json, Json]]:
    """Every (list or object, index or key) inside of ``value``; none in what is met twice."""
    pending, seen = [value], set()
    while pending:
        one = pending.pop()
        if isinstance(one, (list, dict)) and id(one) not in seen:
            seen.add(id(one))
            for key in one if isinstance(one, dict) else range(len(one)):
                yield one, key
                pending.append(one[key])


def _bytes_changed(data: bytes, draw: random.Random) -> bytes:
    changing = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 20])):
        place = draw.randrange(len(changing) + 1)
        until = place + draw.choice([0, 1, 10, 300])
        how = draw.randrange(4)
        if how == 0:
            changing[place:place] = draw.choice(_BITS + _MORE)
        elif how == 1:
            changing[place:until] = bytes(until - place)
        elif how == 2:
            changing[place:place] = changing[place:until] * 3
        else:
            del changing[place : until if draw.random() < 0.8 else None]
    return bytes(changing)


def bomb(head: bytes, unit: bytes, size: int = 1 << 30) -> Maker:
    """A small archive of ``head`` and of ``size`` bytes that are ``unit`` again and again."""

    def data() -> bytes:
        packing = zlib.compressobj(1, wbits=31)
        piece = unit * ((1 << 20) // len(unit))
        parts = [packing.compress(head)]
        parts += [packing.compress(piece) for _ in range(size // len(piece))]
        return b"".join((*parts, packing.flush()))

    return lambda folder: content(data(), "trace.json.gz")(folder)


_SCHEMA = WHOLE["speedscope"][: WHOLE["speedscope"].index(b'"samples"')]
_EVENT = b'{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1, "args": {}},'

BOMBS: dict[str, tuple[Maker, str]] = {
    "zeros": (bomb(b"", b"\0"), "not a trace"),
    "folded": (bomb(b"main;a 3\nmain;b 4\n", b"a"), "more than 150 times its size"),
    "proton": (bomb(b'[{"children": [{"frame": 1', b" "), "more than 150 times its size"),
    "speedscope": (bomb(_SCHEMA + b'"samples": [', b"["), "more than 150 times its size"),
    "kineto": (bomb(b'{"a": "', b"x", 1 << 28), "not a trace|JSON"),
    "long value": (bomb(b'{"baseTimeNanoseconds": 1, "a": "', b"x"), "damaged at byte"),
    "many brackets": (bomb(b'{"baseTimeNanoseconds": 1, "a": ', b"["), "damaged at byte"),
}
"""Archives that unpack to a gigabyte, and what is said of them."""


def deep(count: int) -> dict[str, bytes]:
    """Files in which something is in itself ``count`` times."""
    events = [(kind, 0, at) for at, kind in enumerate("O" * count + "C" * count)]
    innermost = b'{"frame": {"name": "k"}, "metrics": {"time (ns)": 5, "device_id": "0"}}'
    call = b'{"cat": "cpu_op", "ph": "X", "name": "a", "ts": 1, "dur": 2, "args": {"x": %s}}'
    return {
        "folded": b";".join([b"a"] * count) + b" 5\nmain;b 3\n",
        "samples": document(sampled([[0] * count, [0]], [2, 1])),
        "events": document(evented(*events)),
        "proton": b"["
        + b'{"frame":{"name":"a"},"children":[' * count
        + innermost
        + b"]}" * count
        + b"]",
        "arguments": b'{"traceEvents": [%s, %s]}'
        % (call % b"1", call % (b"[" * count + b"]" * count)),
    }


def hopeless(count: int) -> dict[str, bytes]:
    """Traces of ``count`` events, every one of which is damaged."""
    begin = b'{"traceEvents": [' + _EVENT
    return {
        "no event ends": begin + b'{"ph": "X", "name": "a", "args": {"q": [},' * count,
        "all end together": begin + b'{"ph": "X", "args": {},' * count + b"}" * count + b"]}",
        "every second quote is lost": begin + _EVENT.replace(b'"a"', b'"a') * count + b"]}",
        "nothing but brackets": begin + b"{" * count,
        "nothing but closing brackets": begin + b"}" * count,
        "nothing but quotes": begin + b'"' * count,
    }


def _greedy_xz() -> bytes:
    """An archive for which xz takes a gigabyte of memory, however little is in it."""
    greedy = {"id": lzma.FILTER_LZMA2, "preset": 0}
    packed = bytearray(lzma.compress(bytes(100), filters=[greedy]))
    packed[16] = 0x24  # The dictionary's size: xz file format, 5.3.1.
    packed[20:24] = zlib.crc32(packed[12:20]).to_bytes(4, "little")
    return bytes(packed)


PACKED: dict[str, tuple[bytes, str]] = {
    "zip": (b"PK\x03\x04" + bytes(50), "zip archive: unpack it"),
    "damaged zstd": (b"\x28\xb5\x2f\xfd" + b"\xff" * 50, "not a whole zstd file"),
    "beginning of xz": (lzma.compress(WHOLE["kineto"])[:20], "not a whole xz file"),
    "xz of a text": (lzma.compress(b"The kernels are slow.\n"), "not a trace"),
    "xz that takes a gigabyte": (_greedy_xz(), "not a whole xz file"),
    "bzip2": (bz2.compress(WHOLE["kineto"]), "bzip2: unpack it"),
    "gzip of gzip": (gzip.compress(gzip.compress(WHOLE["kineto"])), "packed twice: unpack it"),
    "gzip of nothing": (gzip.compress(b""), "not a trace|empty"),
    "beginning of gzip": (b"\x1f\x8b", "not a whole gzip file"),
}
"""Archives of other kinds, and what is said of them."""

HOSTILE_JSON: dict[str, bytes] = {
    "frame beyond 64 bits": WHOLE["speedscope"].replace(b'"frame": 1', b'"frame": 9' + b"0" * 30),
    "correlation beyond 64 bits": WHOLE["kineto"].replace(
        b'"correlation": 3', b'"correlation": 3' + b"0" * 30
    ),
    "times of a million digits": WHOLE["kineto"].replace(b'"ts": 0.1', b'"ts": 1' + b"0" * 10**6),
    "stray closing brackets": WHOLE["kineto"].replace(b'{"ph"', b'}]}{"ph"'),
    "a bracket before all events": WHOLE["kineto"].replace(b"[{", b"[[{", 1),
    "only names of processes": b'{"traceEvents": [{"ph": "M", "name": "process_name"}]}',
    "no events": b'{"schemaVersion": 1, "traceEvents": []}',
    "two lists of events": WHOLE["kineto"][:-1] + b', "traceEvents": []}',
    "UTF-16": WHOLE["kineto"].decode().encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + WHOLE["kineto"],
    "two archives in a row": gzip.compress(WHOLE["folded"]) + gzip.compress(WHOLE["folded"]),
}
"""What has no place in the other tables."""
