"""Check and write what a command puts out, and choose the sections of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flame.cli.streams import is_terminal, print_text
from flame.console.terminal import say
from flame.core.errors import UsageError
from flame.core.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import BinaryIO

    from flame.core.loading.inputs import Inputs
    from flame.core.report.table import SectionKind

GATE_EXIT_CODES = {True: 5, False: 0, None: 6}
"""By whether the condition of --fail-on holds; None: that cannot be decided."""

_GAP = 2


def check_output(
    name: str | None, inputs: Iterable[Inputs], force: bool, option: str = "-o"
) -> None:
    """Raise UsageError before anything is read where what is there must not be replaced."""
    from flame.core.files.atomic import is_stream, refuse_missing_folder
    from flame.core.files.packed_output import packing_problem

    if name is None or is_stream(name):
        return
    refuse_missing_folder(name)
    if problem := packing_problem(name):
        raise UsageError(f"{option} {name}: {problem}")
    if any(each.hold(Path(name)) for each in inputs):
        raise UsageError(f"{option} {name}: is what is read")
    if os.path.lexists(name) and not force:
        raise UsageError(f"{name}: is there already; --force replaces it")


def refuse_terminal(name: str, data: str, option: str = "-o") -> None:
    """Raise UsageError where ``data``, which is no text, would be written to a terminal."""
    if name == "-" and is_terminal(sys.stdout):
        raise UsageError(f"{data} is no text: name a file with {option}, or use a pipe")


def write_output(
    name: str | None, write: Callable[[BinaryIO], object], force: bool, *, is_packed: bool = False
) -> None:
    """Write into the file of that ``name``, all or nothing; None is standard output.

    Where the name ends with ``.gz`` it is packed, unless what is written ``is_packed`` already.
    """
    from flame.core.files.atomic import STDOUT, OccupiedError, atomic_output, is_stream
    from flame.core.files.packed_output import packed_output

    target = STDOUT if name is None else name
    opened = atomic_output if is_packed else packed_output
    try:
        with opened(target, replace=force or is_stream(target)) as file:
            write(file)
    except OccupiedError as error:  # It has appeared meanwhile.
        raise UsageError(f"{error}; --force replaces it") from None
    if target != STDOUT:
        say(f"wrote {target}")


def chosen_sections(text: str | None, kinds: Mapping[str, SectionKind[Any]]) -> list[str] | None:
    """List the sections that ``text`` names; None where it asks for them, which is answered."""
    names = list(kinds) if text is None else [name.strip() for name in text.split(",")]
    if names == ["help"]:
        width = max(map(len, kinds)) + _GAP
        print_text("".join(f"{kind.name:<{width}}{kind.title}\n" for kind in kinds.values()))
        return None
    if unknown := [name for name in names if name not in kinds]:
        meant = did_you_mean(unknown[0], kinds)
        raise UsageError(f"--section {unknown[0]}: is none of {', '.join(kinds)}{meant}")
    return names
