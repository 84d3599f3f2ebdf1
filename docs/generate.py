"""Write the generated parts of the manual: keys, options, settings and packages.

A page holds a part between ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->``. With ``--check``
nothing is written; the pages that are out of date are named, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

from docs.man_pages import man_pages
from flame.cli.parser import command_parsers
from flame.core.model.metrics import ALL_METRICS
from flame.core.names.framework import FRAMEWORK
from flame.core.operators.gpu_table import ROWS
from flame.core.projection.named_levels import NAMED_LEVELS, NamedLevels
from flame.options.config import CHOICES, DEFAULTS, REPORT_OPTIONS, SETTINGS
from flame.options.selection import (
    EFFICIENCY,
    FILTERS,
    NAMES,
    READING,
    STACKS,
    add_selection,
)
from flame.tui.session.glossary import GLOSSARY, meaning_of
from flame.tui.shell.command import Command
from flame.tui.shell.commands import COMMANDS, DIFF_COMMANDS, LIVE_COMMANDS, RANKS_COMMANDS
from flame.tui.shell.diff_commands import DIFF
from flame.tui.shell.keymap import short_id
from flame.tui.shell.live_commands import LIVE
from flame.tui.shell.sass_commands import SASS_COMMANDS

DOCS = Path(__file__).parent
ROOT = DOCS.parent
_MARK = re.compile(r"<!-- ([\w -]+): begin -->\n.*?<!-- \1: end -->\n", re.DOTALL)
_TOP = "flame"


# Keys and settings


def key_table(commands: Sequence[Command]) -> str:
    """Return the keys of ``commands`` as a Markdown table."""
    return _table("key", ((_code(one.shown), one.help) for one in commands if one.help))


def unlike(commands: Sequence[Command]) -> list[Command]:
    """List those of ``commands`` that are not, with the same help, those of a trace."""
    usual = {(one.shown, one.help) for one in COMMANDS}
    return [one for one in commands if (one.shown, one.help) not in usual]


def command_names() -> str:
    """Return the names by which the configuration file calls commands."""
    every = (*COMMANDS, *LIVE_COMMANDS, *DIFF_COMMANDS, *RANKS_COMMANDS, *SASS_COMMANDS)
    return ", ".join(map(_code, dict.fromkeys(map(short_id, every)))) + "\n"


def setting_table() -> str:
    """Return the settings of the configuration file, their defaults and their values."""
    return _table("setting", map(_setting, SETTINGS), "values")


_TABLES = {
    "keys": "a table: keys by command",
    "report": f"a table: {' and '.join(map('`{}`'.format, REPORT_OPTIONS))}, as the options",
}


def _setting(name: str) -> tuple[str, str]:
    default = getattr(DEFAULTS, name)
    if isinstance(default, dict):
        return _code(f"[{name}]"), _TABLES[name]
    if isinstance(default, list):
        return _code(name), "a list of regular expressions"
    if name in CHOICES:
        others = [f'`"{value}"`' for value in CHOICES[name] if value != default]
        return _code(name), ", ".join([f'`"{default}"` (default)', *others])
    if isinstance(default, bool):
        first, second = ("true", "false") if default else ("false", "true")
        return _code(name), f"`{first}` (default), `{second}`"
    return _code(name), "text in quotes"


# Options


def command_options() -> dict[str, str]:
    """Return a table of options by command; those of the selection have tables of their own."""
    return {
        f"options of {name}": _grouped_table(_own_groups(parser))
        for name, parser in command_parsers().items()
    }


def _own_groups(parser: argparse.ArgumentParser) -> dict[str, list[argparse.Action]]:
    """Return the options of a command by the titles of their groups, as ``--help`` has them."""
    shared = {action.dest for action in _actions(_selection())}
    if not shared <= {one.dest for one in _actions(parser)}:
        shared = set()
    own = [action for action in _actions(parser) if action.dest not in shared]
    groups = {
        group.title or "": [one for one in group._group_actions if one in own]
        for group in parser._action_groups
    }
    return {title: actions for title, actions in groups.items() if actions}


def _grouped_table(groups: Mapping[str, Sequence[argparse.Action]]) -> str:
    """Return a table of options with a row for the title of each group, where there are several."""
    if len(groups) < 2:
        return _option_table(chain.from_iterable(groups.values()))
    rows = list[tuple[str, str]]()
    for title, actions in groups.items():
        rows += [(f"**{title}**", ""), *_option_rows(actions)]
    return _table("option", rows)


SELECTION_GROUPS = {
    "samples": READING,
    "stacks": STACKS,
    "filters": FILTERS,
    "names": NAMES,
    "efficiency": EFFICIENCY,
}
"""The groups of options of the selection, by what their tables are called in the manual."""


def selection_options() -> dict[str, str]:
    """Return a table of options for each group of the selection."""
    groups = {group.title: group._group_actions for group in _selection()._action_groups}
    return {
        f"options of {name}": _option_table(groups[title])
        for name, title in SELECTION_GROUPS.items()
    }


def _selection() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    add_selection(parser)
    return parser


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [one for one in parser._actions if one.option_strings and one.dest != "help"]


def _option_table(actions: Iterable[argparse.Action]) -> str:
    return _table("option", _option_rows(actions))


def _option_rows(actions: Iterable[argparse.Action]) -> Iterator[tuple[str, str]]:
    return ((_spelling(one), _meaning(one)) for one in actions)


def _spelling(action: argparse.Action) -> str:
    value = action.metavar or "|".join(action.choices or ())
    words = (f"{option} {value}".strip() for option in action.option_strings)
    return ", ".join(_code(word.replace("|", r"\|")) for word in words)


def _meaning(action: argparse.Action) -> str:
    return _escaped((action.help or "") % vars(action))


def _escaped(text: str) -> str:
    return re.sub(r"([*|<>\\`_])", r"\\\1", text)


def arrangement_table() -> str:
    """Return the arrangements of levels, what levels each has and what it is for."""
    return _table("arrangement", map(_arrangement, NAMED_LEVELS), "its levels")


def _arrangement(named: NamedLevels) -> tuple[str, str]:
    levels = _code(",".join(named.levels)) if named.levels else "those of the metric"
    fold = " and `--fold-layers`" if named.fold else ""
    return _code(named.name), f"{levels}{fold}: {named.about}"


def metric_table() -> str:
    """Return the metrics: how options and screens call them, and what they measure."""
    listed = ((_code(one.key), one.title, meaning_of(one.title)) for one in ALL_METRICS)
    rows = (f"| {' | '.join(cells)} |" for cells in listed)
    return "\n".join(["| metric | on screen | what it measures |", "|---|---|---|", *rows, ""])


def word_tables() -> str:
    """Return a table of words for each section of the screen's glossary."""
    tables = (
        (title, _table("word", ((f"**{word}**", _escaped(text)) for word, text in entries)))
        for title, entries in GLOSSARY
    )
    return "\n".join(f"## {title}\n\n{table}" for title, table in tables)


def peak_table() -> str:
    """Return the peaks of GPUs that flame knows, and where they are from."""
    rows = (
        (
            ", ".join(row.names),
            _cell(row.fp16),
            _cell(row.bf16),
            _cell(row.fast_fp32),
            _cell(row.fp32),
            _cell(row.fp8),
            _cell(row.gb_per_s),
            row.source,
            row.checked,
        )
        for row in ROWS
    )
    heads = ("FP16", "BF16", "TF32", "FP32", "FP8", "GB/s", "source", "checked")
    lines = [f"| {' | '.join(('GPU', *heads))} |", f"|{'---|' * (len(heads) + 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(cells)} |" for cells in rows), ""])


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:,g}"


# Packages


def package_list() -> str:
    """Return every package of flame with its charter, the first line of its docstring."""
    rows = ((_code(f"{package}/"), _charter(ROOT / package)) for package in _packages(Path(_TOP)))
    return _table("package", rows, "what belongs there")


def _charter(package: Path) -> str:
    tree = ast.parse((package / "__init__.py").read_text("utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0].replace("``", "`")


def _packages(package: Path) -> Iterator[str]:
    """Yield the packages below ``package``, importers before what they import."""
    inner = [path.parent.name for path in (ROOT / package).glob("*/__init__.py")]
    order = _layers().get(".".join(package.parts), [])
    for name in sorted(inner, key=lambda one: (_place(order, one), one)):
        yield (package / name).as_posix()
        yield from _packages(package / name)


def _place(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


@cache
def _layers() -> dict[str, list[str]]:
    """Return the order of modules in each container, as the import contracts have it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return {
        container: [name for layer in contract["layers"] for name in re.findall(r"\w+", layer)]
        for contract in settings["tool"]["importlinter"]["contracts"]
        for container in contract.get("containers", ())
        if contract["type"] == "layers"
    }


# Pages


def parts() -> dict[str, str]:
    """Return the text of every generated part by its name."""
    return {
        "keys": key_table(COMMANDS),
        "live keys": key_table(LIVE),
        "diff keys": key_table(DIFF),
        "ranks keys": key_table(unlike(RANKS_COMMANDS)),
        "sass keys": key_table(SASS_COMMANDS),
        "command names": command_names(),
        "settings": setting_table(),
        "framework frames": "".join(f"- {_code(pattern)}\n" for pattern in FRAMEWORK),
        "arrangements": arrangement_table(),
        "metrics": metric_table(),
        "peaks": peak_table(),
        "words": word_tables(),
        **selection_options(),
        **command_options(),
        "packages": package_list(),
    }


def names_in(text: str) -> list[str]:
    """Return the names of the generated parts of a page."""
    return [mark[1] for mark in _MARK.finditer(text)]


def generated(text: str, parts: Mapping[str, str]) -> str:
    """Return the page ``text`` with its generated parts as they should be."""
    return _MARK.sub(lambda mark: _marked(mark[1], parts[mark[1]]), text)


def _marked(name: str, part: str) -> str:
    return f"<!-- {name}: begin -->\n{part}<!-- {name}: end -->\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the generated parts, or check them; return the exit code."""
    parser = argparse.ArgumentParser(description="Write the generated parts of the manual.")
    parser.add_argument("--check", action="store_true", help="write nothing, name what differs")
    check = parser.parse_args(argv).check
    outdated = list(_outdated())
    for path, text in outdated:
        print(f"{path.relative_to(ROOT)}: {'is out of date' if check else 'written'}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
    return int(check and bool(outdated))


def _outdated() -> Iterator[tuple[Path, str]]:
    """Yield the pages whose generated parts differ, with their new text."""
    found = parts()
    for path in sorted(DOCS.glob("*.md")):
        text = path.read_text("utf-8")
        if (new := generated(text, found)) != text:
            yield path, new
    for name, text in man_pages().items():
        page = DOCS / "man" / name
        if not page.exists() or page.read_text("utf-8") != text:
            yield page, text


def _code(text: str) -> str:
    return f"`{text}`"


def _table(title: str, rows: Iterable[tuple[str, str]], second: str = "") -> str:
    lines = [f"| {first} | {text} |" for first, text in rows]
    head = f"| {title} | {second} |".replace("  ", " ")
    return "\n".join([head, "|---|---|", *lines, ""])


if __name__ == "__main__":
    sys.exit(main())
