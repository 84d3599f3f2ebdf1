"""Run ``flame view``: show traces in the app, in a browser or as printed text."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from flame.cli.arguments import TRACES, inputs_of
from flame.cli.reopening import add_no_cache, profile_cache
from flame.cli.streams import is_on_terminal, print_text, terminal_width
from flame.core.errors import UsageError
from flame.core.starting import prepare_process
from flame.options.selection import (
    add_selection,
    load_options_of,
    said_by,
    selection_of,
    with_framework,
)

if TYPE_CHECKING:
    from flame.core.loading.inputs import Inputs
    from flame.core.options import LoadOptions
    from flame.core.projection.selection import Selection
    from flame.core.reopening.profile_cache import ProfileCache
    from flame.options.config import Config

_EPILOG = """\
The app reads $XDG_CONFIG_HOME/flame/config.toml (default: ~/.config/flame/config.toml; FLAME_CONFIG
names another file): theme, keys and more, see docs/configuration.md. NO_COLOR and FLAME_ASCII=1
are respected.
"""
_PORT = 8000
_PRINTED_WIDTH = 120


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    text = f"{TRACES}. Of another folder, or if left out, a list of the traces there opens"
    text += "; with --state, if left out, those of the state"
    parser.add_argument("paths", metavar="PATH", nargs="*", help=text)
    add = parser.add_argument_group("how it is shown").add_argument
    text = "return to a place saved by the app: JSON, a file, or (default) the last one"
    add("--state", metavar="JSON|FILE", nargs="?", const="", help=text)
    text = "print a static view instead; this is the default without a terminal"
    add("--print", action="store_true", help=text)
    text = "show the app in a browser instead, on this machine's loopback address"
    add("--web", action="store_true", help=text)
    text = f"port of --web (default: {_PORT}; 0: any free port)"
    add("--port", metavar="N", type=_port, default=_PORT, help=text)
    add_selection(parser, in_app=True)
    add_no_cache(parser)
    parser.epilog = _EPILOG
    parser.set_defaults(run=run)


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port from 0 to 65535")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Show the traces of ``args``."""
    in_app = not args.print and not args.web and _can_show_app()
    if not args.paths and not in_app:
        raise UsageError("name a trace to open: flame PATH, or - for a pipe (see flame --help)")
    options = load_options_of(args)
    if in_app and not any(word.startswith("-") for word in args.words):
        return _show(args, options)
    prepare_process()
    selection = selection_of(args, "short")  # What is wrong with it, is told here.
    if args.web:
        return _serve(args)
    if not in_app:
        with profile_cache(args, selection) as cache:
            return _print(inputs_of(args), options, selection, cache)
    return _show(args, options)


def _can_show_app() -> bool:
    from flame.options.config import is_in_browser

    return is_on_terminal() or is_in_browser()


def _show(args: argparse.Namespace, options: LoadOptions) -> int:
    """Show the traces in the app, or the list of those to choose from."""
    from flame.cli.app_start import started
    from flame.options.config import is_in_browser, read_config

    if is_in_browser():
        from flame.web.lifetime import end_with_server

        end_with_server()
    config = read_config()
    if args.no_cache:
        config = replace(config, cache=False)
    selection = partial(_shown_selection, args, config)
    folder = _folder_to_search(args.paths)
    with started(config, said_by(args)) as start:
        if folder is not None:
            from flame.tui.picker.app import run as run_picker

            every = not args.paths
            return run_picker(folder, every, options, selection, args.state, config, start)
        from flame.tui.main.app import run as run_app

        return run_app(inputs_of(args), options, selection, args.state, config, start)


def _shown_selection(args: argparse.Namespace, config: Config) -> Selection:
    """Return what the app shows at first, which imports numpy: so the app calls it as it loads."""
    prepare_process()
    return with_framework(selection_of(args, config.kernel_names), config.framework)


def _folder_to_search(paths: list[str]) -> Path | None:
    """Return the folder of whose traces the user is to choose; None where traces are named."""
    if not paths:
        return Path()
    from flame.core.readers.fdump.folder import is_folder, is_recording

    path = Path(paths[0])
    return path if len(paths) == 1 and is_folder(path) and not is_recording(path) else None


def _print(
    inputs: Inputs, options: LoadOptions, selection: Selection, cache: ProfileCache | None
) -> int:
    from flame.console.print_view import view
    from flame.console.progress import load_with_progress

    profile = load_with_progress(inputs, options, cache)
    print_text(view(profile, selection, inputs.title, terminal_width(_PRINTED_WIDTH)))
    return 0


def _serve(args: argparse.Namespace) -> int:
    if args.print:
        raise UsageError("--web and --print exclude each other")
    try:
        from flame.web.server import serve
    except ModuleNotFoundError as error:
        need = f"--web needs {error.name}, which is not installed"
        raise UsageError(f"{need}: pip install textual-serve==1.1.3") from None
    from flame.options.config import read_config

    if keys := read_config().keys:
        from flame.tui.shell.keymap import keymap_of

        keymap_of(keys)  # A mistake is better told here than by every page.
    return serve(args.words, inputs_of(args).title, args.port)
