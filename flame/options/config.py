"""Read the user's configuration file: what the app looks like and which keys it has."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flame.core.errors import UsageError
from flame.core.files.user_folders import user_folder
from flame.core.lazy_dataclass import dataclass
from flame.core.names.framework import FRAMEWORK

if TYPE_CHECKING:
    from argparse import Namespace


@dataclass(frozen=True)
class Config:
    """Hold everything that may stand in the file; all of it may be left out.

    ``recent``: traces that were shown are remembered. ``cache``: what has been read of large traces
    is kept, so that they open at once the next time. ``keys`` are key names, comma-separated, by
    command; whoever knows the commands checks them.
    ``framework`` are the expressions of frames that are hidden as those of frameworks. ``report``
    are options of `flame report` by name, of `REPORT_OPTIONS`. ``given`` names the settings that
    stand in the file.
    """

    theme: str = "auto"
    details: bool = True
    ascii: bool = False
    editor: str = ""
    kernel_names: str = "short"
    recent: bool = True
    remember: bool = True
    cache: bool = True
    framework: list[str] = field(default_factory=lambda: list(FRAMEWORK))
    keys: dict[str, str] = field(default_factory=dict)
    report: dict[str, str] = field(default_factory=dict)
    given: frozenset[str] = field(default=frozenset(), compare=False)


DEFAULTS = Config()
"""What holds where there is no file."""

SETTINGS = tuple(setting.name for setting in fields(Config) if setting.name != "given")
"""The words that the file may have."""

REPORT_OPTIONS = ("phases", "iteration")
"""Options of ``flame report`` that may stand in the file."""

CHOICES = {
    "theme": ("auto", "flame-dark", "flame-light", "flame-contrast", "flame-ansi"),
    "kernel_names": ("short", "base", "demangled", "mangled"),
}
"""Values of the settings that have a fixed set of them."""

_KINDS = {
    bool: "true or false",
    str: 'text in quotes, as in "…"',
    list: 'a list of texts, as in ["…", "…"]',
    dict: "a table, as in [{}]",
}

_MANY = 8


def is_in_browser() -> bool:
    """Tell whether a web server runs this process, and what is drawn goes to a browser."""
    return os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")


def config_path() -> Path:
    """Return where the file is, or would be: FLAME_CONFIG, or config.toml of the user."""
    if named := os.environ.get("FLAME_CONFIG"):
        return Path(named)
    return user_folder("XDG_CONFIG_HOME", "~/.config") / "config.toml"


def state_path() -> Path:
    """Return where the app saves a place: ``flame/state.json`` in the user's state folder (XDG)."""
    return user_folder("XDG_STATE_HOME", "~/.local/state") / "state.json"


def read_config() -> Config:
    """Read the user's file, or return the defaults where there is none.

    Raises UsageError, of one line, where it cannot be read or says what is not understood; a file
    that FLAME_CONFIG names has to be there.
    """
    path = config_path()
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        if not os.environ.get("FLAME_CONFIG"):
            return DEFAULTS
        raise UsageError(f"{path}: no such file (FLAME_CONFIG names it)") from None
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    try:
        return _with_paths(_parsed(content), path.parent)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def allows_cache(args: Namespace) -> bool:
    """Tell whether neither the command line nor the configuration turns the cache off.

    A mistake in the configuration does: it is for the app to report.
    """
    if getattr(args, "no_cache", False):  # not all commands have it
        return False
    with suppress(UsageError):
        return read_config().cache
    return False


def _with_paths(config: Config, folder: Path) -> Config:
    """Say where files are that the file in ``folder`` names: in this folder, or at home."""
    if "phases" not in config.report:
        return config
    path = folder / Path(config.report["phases"]).expanduser()
    return replace(config, report={**config.report, "phases": str(path)})


def _parsed(content: bytes) -> Config:
    import tomllib

    try:
        table = tomllib.loads(content.decode())
    except ValueError as error:  # also TOMLDecodeError and UnicodeDecodeError
        raise UsageError(f"no TOML: {error}") from None
    except RecursionError:
        raise UsageError("no TOML that can be read: values are nested too deep") from None
    for word, value in table.items():
        refuse_unknown(word, SETTINGS, "unknown setting")
        _check(word, value)
    return Config(**table, given=frozenset(table))


def _check(word: str, value: Any) -> None:
    """Raise UsageError if ``value`` is nothing that the setting ``word`` can have."""
    default = getattr(DEFAULTS, word)
    if not isinstance(value, type(default)):
        raise UsageError(f"{word} has to be {_KINDS[type(default)].format(word)}")
    if word in CHOICES:
        refuse_unknown(value, CHOICES[word], f"unknown {word}")
    if isinstance(value, list):
        _check_expressions(word, value)
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(inner, str):
                raise UsageError(f"{word}.{key} has to be {_KINDS[str]}")
    if word == "report":
        _check_report(value)


def _check_report(options: dict[str, str]) -> None:
    for option in options:
        refuse_unknown(option, REPORT_OPTIONS, "unknown option of [report]")
    if "iteration" in options:
        _check_expressions("report.iteration", [options["iteration"]])


def _check_expressions(word: str, expressions: list[Any]) -> None:
    from flame.core.regex import compile_expression

    for expression in expressions:
        if not isinstance(expression, str):
            raise UsageError(f"{word} has to be {_KINDS[list]}")
        try:
            compile_expression(expression)
        except UsageError as error:
            raise UsageError(f"{word}: '{expression}' is {error}") from None


def refuse_unknown(word: str, words: Sequence[str], complaint: str) -> None:
    """Raise UsageError, with ``complaint`` and the nearest, if ``word`` is none of ``words``."""
    if word in words:
        return
    from difflib import get_close_matches

    near = get_close_matches(word, words, 1, 0.5)
    some = [*words[:_MANY], *("…" for _ in words[_MANY : _MANY + 1])]
    hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(some)}"
    raise UsageError(f"{complaint} '{word}': {hint}")
