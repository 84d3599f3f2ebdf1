"""Check what else recording and viewing need: other tools, folders, the terminal."""

from __future__ import annotations

import locale
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path

from flame.core.compiled.library import LIBRARY, compiled
from flame.core.errors import UsageError
from flame.core.external import find_program
from flame.core.files.bounds import DAYS_VARIABLE, SIZE_VARIABLE, cache_size, read_bounds
from flame.core.files.cache_folder import NoCacheError, cache_path, refuse_untrusted
from flame.core.sass import nvdisasm
from flame.core.units import format_bytes
from flame.doctor.check import Check, ask
from flame.record.environment import INJECTIONS, owner

_LITTLE = 2_000_000_000
_TOOLS = {
    "nsys": "only .nsys-rep reports need it, their SQLite exports do not",
    "ncu": "only .ncu-rep reports need it, their source pages as CSV do not",
}
_SMALLEST = (80, 24)


def injections(environment: Mapping[str, str]) -> Check:
    """Check whether another tool wants to be in every process that is started from here."""
    named = [
        f"{name} names {owner(path)}" for name in INJECTIONS if (path := environment.get(name))
    ]
    if not named:
        return Check("injection", "other tools", "ok", "no other injection is set")
    fix = f"flame record replaces them for what it runs; unset {' '.join(INJECTIONS)} otherwise"
    return Check("injection", "other tools", "limited", "; ".join(named), fix)


def tools() -> Iterator[Check]:
    """Check which of NVIDIA's own tools are on PATH."""
    for name, use in _TOOLS.items():
        if path := find_program(name):
            yield Check(name, name, "ok", ", ".join(filter(None, (_version(path), path))))
        else:
            yield Check(name, name, "absent", f"not on PATH; {use}")
    yield _disassembler()


def _disassembler() -> Check:
    check = partial(Check, "nvdisasm", "nvdisasm")
    if tool := nvdisasm.find_disassembler():
        return check("ok", f"{tool.version}, {tool.path}")
    without = "instructions with PC samples are shown as kernel+0x120"
    if named := os.environ.get(nvdisasm.PATH_VARIABLE):
        return check("limited", f"{named} ({nvdisasm.PATH_VARIABLE}) does not run; {without}")
    return check("absent", f"not installed; {without}", "pip install nvidia-cuda-nvdisasm")


def _version(path: str) -> str:
    try:
        _, output = ask([path, "--version"])
    except OSError:
        return ""
    match = re.search(r"\d+\.\d+(\.\d+)*", output)
    return match[0] if match else ""


def nvtx() -> Check:
    """Check whether this Python can make NVTX ranges without PyTorch."""
    try:
        return Check("nvtx", "nvtx package", "ok", metadata.version("nvtx"))
    except metadata.PackageNotFoundError:
        fix = "pip install nvtx lets Python code name what it does; torch.cuda.nvtx does as well"
        return Check("nvtx", "nvtx package", "absent", "not installed for this Python", fix)


def folders() -> Iterator[Check]:
    """Check where recordings go: this folder, or that for temporary files."""
    yield _folder("folder", "this folder", Path.cwd)
    yield _folder("temporary", "temporary", lambda: Path(tempfile.gettempdir()))


def _folder(key: str, title: str, find: Callable[[], Path]) -> Check:
    try:
        folder = find()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Check(key, title, "limited", error.strerror or str(error), "use flame record -o DIR")
    if not os.access(folder, os.W_OK | os.X_OK):
        return Check(key, title, "limited", f"{folder}: not writable", "use flame record -o DIR")
    text = f"{folder}: {format_bytes(free)} free"
    if free < _LITTLE:
        return Check(key, title, "limited", text, "use flame record -o DIR, or --max-size")
    return Check(key, title, "ok", text)


def cache() -> Check:
    """Check where converted reports and disassembled code are kept, and how much of it there is."""
    try:
        refuse_untrusted()
        path, bounds = cache_path(), read_bounds()
    except (NoCacheError, UsageError) as error:
        fix = "a folder of your own in XDG_CACHE_HOME"
        if isinstance(error, UsageError):
            fix = f"unset {SIZE_VARIABLE} {DAYS_VARIABLE}, or set them to such values"
        return Check("cache", "cache", "limited", str(error), fix)
    held = f"{format_bytes(cache_size())} of at most {format_bytes(bounds.size)}"
    return Check("cache", "cache", "ok", f"{path}: {held}, {bounds.days} days after the last use")


def compiled_part() -> Check:
    """Check whether large traces are read by the compiled library."""
    title = "reading"
    if compiled():
        return Check("reading", title, "ok", f"by the compiled library, {LIBRARY}")
    if not LIBRARY.exists():
        fix = "install flame again where there is a C compiler"
        return Check("reading", title, "limited", "by numpy alone, several times slower", fix)
    wanted = os.environ.get("FLAME_NO_NATIVE", "0") in ("", "0")
    fix = "install flame again: its library does not fit" if wanted else "unset FLAME_NO_NATIVE"
    return Check("reading", title, "limited", "by numpy alone, several times slower", fix)


def terminal(environment: Mapping[str, str]) -> Check:
    """Check what the app can draw with here."""
    columns, rows = shutil.get_terminal_size()
    colours, encoding = _colours(environment), locale.getpreferredencoding(False)
    unicode = encoding.lower().replace("-", "") == "utf8"
    drawn = "Unicode" if unicode else f"ASCII, as the encoding is {encoding}"
    text = f"{colours}, {drawn}, {columns} x {rows}"
    small = columns < _SMALLEST[0] or rows < _SMALLEST[1]
    fixes = [
        "a terminal with 256 colours or more shows kinds and shares better"
        if colours in ("no colours", "few colours")
        else "",
        "a locale such as C.UTF-8 gives finer drawing" if not unicode else "",
        f"the app wants {_SMALLEST[0]} x {_SMALLEST[1]}" if small else "",
    ]
    fix = "; ".join(filter(None, fixes))
    return Check("terminal", "terminal", "limited" if fix else "ok", text, fix)


def _colours(environment: Mapping[str, str]) -> str:
    term = environment.get("TERM", "dumb")
    if term == "dumb" or environment.get("NO_COLOR"):
        return "no colours"
    if environment.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "all colours"
    return "256 colours" if "256" in term else "few colours"


def system() -> Check | None:
    """Check the system; None where it is one that can record."""
    if sys.platform == "linux":
        return None
    text = f"recording works on Linux only, this is {sys.platform}"
    return Check("system", "system", "missing", text, "record there, and view it here")
