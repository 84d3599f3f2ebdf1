"""Run ``flame attach``: watch what a running program does on the GPU."""

from __future__ import annotations

import argparse
import sys

from flame.cli.app_start import started
from flame.cli.arguments import pc_mode
from flame.cli.streams import WIDEST_TEXT, is_on_terminal, print_text, terminal_width
from flame.core.errors import UsageError
from flame.core.live.window import WINDOWS, LiveWindow
from flame.core.starting import prepare_process
from flame.options.config import is_in_browser, read_config
from flame.options.selection import (
    add_selection,
    load_options_of,
    said_by,
    selection_of,
    with_framework,
)

_EPILOG = """\
PID is one process and all below it that record; NAME a script or program; PATH the folder of a
recording, or a dump. Without any of them a list to choose from opens.

Whatever was started with 'flame record', or with CUDA_INJECTION64_PATH and NVTX_INJECTION64_PATH
in its environment, is shown as it runs, and left as it is when you quit. Into a running CPython
3.14 or 3.15 the library is loaded. Of another Python the Python stacks can be sampled, without
the GPU: pip install py-spy.

--pc begins or ends PC sampling in a program that is recorded already: then 'flame view' shows the
instructions of its kernels and what they wait for. It prints a line for each process and ends.

--list --json prints an object of jobs, ended and notes. A job has pid, name, command, user, age_s,
way (recording, loadable, cpu, none), active, kernels, launches, bytes, folder, and processes, each
with pid, parent, name, user, age_s, way, denied and dumps; an ended recording has name, pids,
age_s, kernels, bytes and dumps. Counts are null where counting would take too long.

exit codes: 0 ok, 2 usage, 3 nothing there, or it cannot be watched
"""
_WINDOWS = {window.key: window for window in WINDOWS if not window.marked}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.usage = "flame attach [options] [PID|NAME|PATH]"
    parser.epilog = _EPILOG
    add = parser.add_argument
    text = "what to attach to; left out: a list to choose from"
    add("target", metavar="PID|NAME|PATH", nargs="?", help=text)
    add("--list", action="store_true", help="print what can be attached to")
    add("--json", action="store_true", help="with --list: print JSON, for scripts")
    add("--stop", action="store_true", help="end the recording; the program runs on")
    text = (
        "PC sampling from now on: continuous, serialized (exact launches, kernels run one by one) "
    )
    text += "or off; :N samples every 2^N cycles, N from 5 to 31"
    add("--pc", metavar="MODE[:N]", help=text)
    text = "window shown at first: the last 10s (default), the last 60s, or all"
    add("--window", metavar="W", help=text)
    add_selection(parser, in_app=True)
    # What grows would change places all the time.
    parser.set_defaults(sort="name", run=run)


def run(args: argparse.Namespace) -> int:
    """List what can be watched, watch it in the app, stop it or switch its PC sampling."""
    if sys.platform != "linux":
        raise UsageError(
            "programs can be watched on Linux only; what was recorded: flame view PATH"
        )
    check(args)
    prepare_process()
    from flame.attach.command import listing, stop, switch_sampling, target_of

    if args.stop:
        return stop(args.target)
    if args.pc is not None:
        return switch_sampling(target_of(args.target), args.pc)
    on_terminal = is_in_browser() or is_on_terminal()
    if args.list or (args.target is None and not on_terminal):
        width = terminal_width(WIDEST_TEXT)
        print_text(listing(args.json, width, getattr(sys.stdout, "encoding", "") or ""))
    return 0 if args.list else _watch(args, on_terminal)


def _watch(args: argparse.Namespace, on_terminal: bool) -> int:
    """Run the app on a running program."""
    # What is wrong with the options, is wrong without a terminal, too.
    selection, options, window = selection_of(args), load_options_of(args), _window_of(args)
    if not on_terminal:
        raise UsageError(
            "attach shows the app, which needs a terminal: flame attach --list, or flame view PATH"
        )
    config = read_config()
    selection = with_framework(selection_of(args, config.kernel_names), config.framework)
    with started(config, said_by(args)) as start:
        from flame.tui.attach.run import run as run_app

        return run_app(args.target, options, selection, window, config, start)


def check(args: argparse.Namespace) -> None:
    """Raise UsageError where options exclude or need each other."""
    if args.target == "":
        raise UsageError("no process named: flame attach --list shows what there is")
    if args.ncu:
        raise UsageError("--ncu goes with what has ended: flame view PATH --ncu FILE")
    if args.phases is not None:
        raise UsageError("--phases goes with what has ended: flame view PATH --phases FILE")
    for option in ("peak", "dtype", "model_flops"):
        if getattr(args, option) is not None:
            name = option.replace("_", "-")
            raise UsageError(f"--{name} goes with what has ended: flame view PATH --{name} …")
    if args.json and not args.list:
        raise UsageError("--json goes with --list")
    if args.list and (args.stop or args.target is not None):
        raise UsageError("--list shows all there is: it goes with no target, and not with --stop")
    if args.stop and args.target is None:
        raise UsageError("--stop: name what to stop: flame attach --stop PID")
    if args.pc is not None:
        _check_pc(args)


def _check_pc(args: argparse.Namespace) -> None:
    pc_mode(args.pc)
    if args.list or args.stop:
        raise UsageError("--pc switches PC sampling and nothing else: not with --list or --stop")
    if args.target is None:
        raise UsageError(f"--pc: name what to sample: flame attach PID --pc {args.pc}")


def _window_of(args: argparse.Namespace) -> LiveWindow | None:
    """Return the window to begin with, None if that is left to the app."""
    if args.window is None:
        return None
    if args.window not in _WINDOWS:
        raise UsageError(f"--window '{args.window}': choose from {', '.join(_WINDOWS)}")
    return _WINDOWS[args.window]
