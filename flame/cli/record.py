"""Run ``flame record``: run a command and record what it does on the GPU."""

from __future__ import annotations

import argparse
from pathlib import Path

from flame.cli.arguments import pc_mode
from flame.core.errors import UsageError
from flame.core.units import parse_size, parse_time
from flame.record.plan import Plan

_EPILOG = """\
Everything that CMD starts is recorded too, one file per process; 'flame view DIR' shows all of it.
Recording needs no change to the program, and NVTX ranges are recorded without a GPU as well.
FLAME_DEBUG=1 lets the library say on stderr what it does.

exit codes: CMD's own; 128+N if signal N killed it, 127 if there is no such command, 126 if it
            cannot be run; 2 usage or no library, 3 DIR cannot be written
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.usage = "flame record [options] [--] CMD …"
    parser.epilog = _EPILOG
    _add_output(parser.add_argument_group("output"))
    _add_recorded(parser.add_argument_group("what is recorded"))
    text = "what to run, with its arguments"
    parser.add_argument("cmd", metavar="CMD", nargs=argparse.REMAINDER, help=text)
    parser.set_defaults(run=run)


def _add_output(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "new folder to write to (default: NAME.flame here, after the script or command)"
    add("-o", "--output", metavar="DIR", help=text)
    text = "write no more than this for each process, such as 500MB or 4GB (default: 16 GiB)"
    add("--max-size", metavar="SIZE", help=text)
    text = "record passwords, tokens and keys in command lines as they are (default: as ***)"
    add("--keep-secrets", action="store_true", help=text)
    text = "no status line while it runs and no summary after it, only what went wrong"
    add("-q", "--quiet", action="store_true", help=text)


def _add_recorded(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "Python frames of every launch (default; CPython 3.11 to 3.14); launches cost less "
    text += "without them"
    add("--python", action=argparse.BooleanOptionalAction, default=True, help=text)
    text = "calls that wait for a GPU, allocate, free or load code, besides launches (default)"
    add("--calls", action=argparse.BooleanOptionalAction, default=True, help=text)
    text = "CUDA graphs: each kernel, copy and memset of them (node, default), or each launch of a "
    text += "graph as one activity, which costs it less (whole)"
    add("--graphs", choices=("node", "whole"), default="node", help=text)
    text = "memory that is allocated and freed on GPUs, with the stack of the call: metrics peak, "
    text += "live, alloc, churn, held (default: not)"
    add("--memory", action="store_true", help=text)
    text = "PC sampling: continuous, serialized (exact launches, kernels run one by one) or off "
    text += "(default); :N samples every 2^N cycles, N from 5 to 31"
    add("--pc", metavar="MODE[:N]", default="off", help=text)
    text = "record each process only for this long, such as 30s or 2m; the program runs on"
    add("--duration", metavar="TIME", help=text)


def run(args: argparse.Namespace) -> int:
    """Record the command that ``args`` name; the exit code is the command's."""
    from flame.record.command import record

    return record(plan_of(args))


def plan_of(args: argparse.Namespace) -> Plan:
    """Return what the options say; UsageError for values that mean nothing."""
    words = args.cmd[1:] if args.cmd[:1] == ["--"] else args.cmd
    if not words:
        raise UsageError("name a command to record: flame record -- CMD (see flame record --help)")
    if args.output == "":
        raise UsageError("-o: no folder given")
    return Plan(
        command=tuple(words),
        output=None if args.output is None else Path(args.output),
        python=args.python,
        calls=args.calls,
        whole_graphs=args.graphs == "whole",
        memory=args.memory,
        pc=pc_mode(args.pc),
        duration_ms=None if args.duration is None else _milliseconds(args.duration),
        max_mb=None if args.max_size is None else _megabytes(args.max_size),
        quiet=args.quiet,
        keep_secrets=args.keep_secrets,
    )


def _milliseconds(text: str) -> int:
    try:
        duration = parse_time(text)
    except UsageError as error:
        raise UsageError(f"--duration: {error}") from None
    if duration <= 0:
        raise UsageError(f"--duration '{text}': nothing would be recorded")
    return -(-duration // 1_000_000)


def _megabytes(text: str) -> int:
    """Parse a size in units of 2^20 bytes, as FLAME_MAX_MB counts."""
    try:
        size = parse_size(text)
    except UsageError as error:
        raise UsageError(f"--max-size: {error}") from None
    if not size:
        raise UsageError(f"--max-size '{text}': nothing could be recorded")
    return -(-size >> 20)
