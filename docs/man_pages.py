"""Write the man pages, docs/man/*.1, of the parser that reads command lines.

Not by argparse-manpage, which makes one page of all commands and needs flame, with all it depends
on, where a wheel is built.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from flame._version import __version__
from flame.cli.help.examples import EXAMPLES
from flame.cli.parser import COMMANDS, build_parser, command_parsers


def man_pages() -> dict[str, str]:
    """Return the text of every page by the name of its file."""
    pages = {"flame.1": "".join(_overview())}
    for name, parser in command_parsers().items():
        pages[f"flame-{name}.1"] = "".join(_page(name, parser))
    return pages


def _overview() -> Iterator[str]:
    yield _title("flame")
    yield _name("flame", "the GPU flame graph in your terminal")
    yield ".SH SYNOPSIS\n.B flame\n[\\fICOMMAND\\fR] [\\fIoptions\\fR] [\\fIPATH\\fR ...]\n"
    yield ".SH COMMANDS\n"
    for name, about in COMMANDS.items():
        yield f".TP\n\\fBflame\\-{name}\\fR(1)\n{_escaped(about)}\n"
    yield ".SH EXAMPLES\n"
    for name in COMMANDS:
        yield from _example(*EXAMPLES[name][0])
    yield from _epilog(build_parser())


def _page(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield _title(f"flame-{name}")
    yield _name(f"flame-{name}", COMMANDS[name])
    usage = " ".join(parser.format_usage().split()).removeprefix("usage: ")
    yield f".SH SYNOPSIS\n{_escaped(usage)}\n.SH EXAMPLES\n"
    for line, about in EXAMPLES[name]:
        yield from _example(line, about)
    yield from _arguments(parser)
    yield from _epilog(parser)
    yield ".SH SEE ALSO\n.BR flame (1)\n"


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    """What stands behind the options, and these by their groups, as ``--help`` has them."""
    places, *others = parser._action_groups
    if places._group_actions:
        yield ".SH ARGUMENTS\n"
        yield from (_option(one, parser) for one in places._group_actions)
    groups = [group for group in others if group._group_actions]
    yield ".SH OPTIONS\n"
    for group in groups:
        if len(groups) > 1:
            title = "others" if group is parser._optionals else group.title or ""
            yield f".SS {_escaped(title.capitalize())}\n"
        shown = (one for one in group._group_actions if one.help != argparse.SUPPRESS)
        yield from (_option(one, parser) for one in shown)


def _title(name: str) -> str:
    return f'.TH {_escaped(name.upper())} 1 "" "flame {__version__}" "flame"\n'


def _name(name: str, about: str) -> str:
    return f".SH NAME\n{_escaped(name)} \\- {_escaped(about)}\n"


def _example(line: str, about: str) -> Iterator[str]:
    yield f".TP\n.B {_escaped(line)}\n{_escaped(about)}\n"


def _option(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    names = ", ".join(f"\\fB{_escaped(name)}\\fR" for name in action.option_strings)
    place = "" if action.nargs == 0 else str(action.metavar or "/".join(action.choices or ()))
    place = f"\\fI{_escaped(place)}\\fR" if place else ""
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    return f".TP\n{f'{names} {place}'.strip()}\n{_escaped(' '.join(text.split()))}\n"


def _epilog(parser: argparse.ArgumentParser) -> Iterator[str]:
    if parser.epilog:
        text = parser.epilog % {"prog": parser.prog} if "%(" in parser.epilog else parser.epilog
        lines = "\n".join(map(_escaped, text.rstrip().splitlines()))
        yield f".SH NOTES\n.nf\n{lines}\n.fi\n"


def _escaped(text: str) -> str:
    """Write ``text`` so that roff takes nothing in it for a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text
