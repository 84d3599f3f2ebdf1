"""List what stands after each option and command: a file, one of several words, a list of them.

Made here and not by shtab: that completes neither lists (`--levels nvtx,kernel`) nor traces where
a command may stand (`flame trace.sqlite`), and would be needed wherever flame is installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from enum import Enum

from flame.core.lazy_dataclass import dataclass


class Takes(Enum):
    """What may stand at a place of a command line."""

    NOTHING = "nothing"
    FREE = "free"
    FILE = "file"
    FOLDER = "folder"
    WORD = "word"
    LIST = "list"
    COMMAND = "command"


@dataclass(frozen=True)
class Value:
    """What an option or a command takes; ``words`` are those of `Takes.WORD` and `Takes.LIST`."""

    takes: Takes
    words: tuple[str, ...] = ()
    is_optional: bool = False


@dataclass(frozen=True)
class OptionSyntax:
    """An option: its spellings, what it takes, and what it does in a few words."""

    names: tuple[str, ...]
    value: Value
    about: str


@dataclass(frozen=True)
class CommandSyntax:
    """A command with its options, and what stands after these."""

    name: str
    about: str
    options: tuple[OptionSyntax, ...]
    value: Value


_FILES = ("FILE", "PATH", "JSON|FILE", "PID|NAME|PATH")
_FOLDERS = ("DIR", "FOLDER")
_LONGEST = 60


def command_table() -> tuple[CommandSyntax, ...]:
    """List all commands with their options, from the parser."""
    from flame.cli.parser import COMMANDS, command_parsers

    named = _named_values()
    parsers = command_parsers()
    return tuple(_command(name, about, parsers[name], named) for name, about in COMMANDS.items())


def _command(
    name: str, about: str, parser: argparse.ArgumentParser, named: Mapping[str, Value]
) -> CommandSyntax:
    options = list[OptionSyntax]()
    after = Value(Takes.NOTHING)
    for action in parser._actions:
        if not action.option_strings:
            after = _value(action, f"{name} {action.dest}", named)
        elif action.help != argparse.SUPPRESS:
            options += _options(name, action, named)
    return CommandSyntax(name, about, tuple(options), after)


def _options(
    name: str, action: argparse.Action, named: Mapping[str, Value]
) -> Iterator[OptionSyntax]:
    spellings = tuple(action.option_strings)
    value = _value(action, f"{name} {spellings[-1]}", named)
    about = _shortened(action.help or "")
    if isinstance(action, argparse.BooleanOptionalAction):
        yield from (OptionSyntax((each,), value, about) for each in spellings)
    else:
        yield OptionSyntax(spellings, value, about)


def _value(action: argparse.Action, place: str, named: Mapping[str, Value]) -> Value:
    if action.nargs == 0:
        return Value(Takes.NOTHING)
    if action.nargs == argparse.REMAINDER:
        return Value(Takes.COMMAND)
    if known := named.get(place) or named.get(place.partition(" ")[2]):
        return known
    if action.choices:
        return Value(Takes.WORD, tuple(map(str, action.choices)))
    if action.metavar in _FOLDERS:
        return Value(Takes.FOLDER)
    if action.metavar in _FILES:
        return Value(Takes.FILE, is_optional=action.nargs == "?")
    return Value(Takes.FREE)


def _named_values() -> dict[str, Value]:
    """What the library has names for, by option, or by command and option."""
    from flame.core.compare.sections.diff_report import SECTIONS as DIFF_SECTIONS
    from flame.core.frame import ACTIVITY_KINDS, COLOURS, IMBALANCE, LEVELS
    from flame.core.model.metrics import ALL_METRICS
    from flame.core.options import NVTX_NAMES
    from flame.core.projection.labels import KERNEL_NAMES
    from flame.core.projection.named_levels import NAMED_LEVELS
    from flame.core.ranks.report import SECTIONS as RANK_SECTIONS
    from flame.core.report.report import SECTIONS
    from flame.core.report.scope import DETAILS
    from flame.exporters.tables.frame_table import METRIC_ORDERS, ORDERS, WORK_ORDERS

    sections = dict.fromkeys(("help", *SECTIONS, *RANK_SECTIONS))
    lists = {
        "--levels": LEVELS,
        "report --section": tuple(sections),
        "diff --section": ("help", *DIFF_SECTIONS),
        "report --by": DETAILS,
        "--include": tuple(kind.title for kind in ACTIVITY_KINDS),
    }
    words = {
        "--arrange": tuple(each.name for each in NAMED_LEVELS),
        "--metric": tuple(dict.fromkeys(metric.key for metric in ALL_METRICS)),
        "--sort": ("weight", "name", "start"),
        "--colours": (*COLOURS, IMBALANCE),
        "--kernel-names": KERNEL_NAMES,
        "--nvtx-names": NVTX_NAMES,
        "--pc": ("continuous", "serialized", "off"),
        "--window": ("10s", "60s", "all"),
        "top --by": (*ORDERS, *WORK_ORDERS, *METRIC_ORDERS),
        "--level": LEVELS,
        "--at": ("peak", "oom", "end"),
        "--per": ("step", "second", "activity", "share", "rank", "total"),
    }
    found = {place: Value(Takes.LIST, tuple(names)) for place, names in lists.items()}
    return found | {place: Value(Takes.WORD, names) for place, names in words.items()}


def _shortened(text: str) -> str:
    """The beginning of a help text, of plain words alone."""
    start = text.replace("%%", "%").partition(";")[0].partition(" (")[0].partition(":")[0]
    kept = "".join(sign for sign in start if sign not in "[]\"'`$\\")
    return kept if len(kept) <= _LONGEST else f"{kept[:_LONGEST].rpartition(' ')[0]} …"
