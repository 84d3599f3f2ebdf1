"""The options that say what to read and what to show of it, and what they mean."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from flame.core.errors import UsageError

if TYPE_CHECKING:
    from flame.core.model.arrangement import Arrangement
    from flame.core.options import LoadOptions
    from flame.core.projection.filters import Filter
    from flame.core.projection.labels import Naming
    from flame.core.projection.selection import Selection


class Parser(argparse.ArgumentParser):
    """Raises UsageError where argparse would print and exit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def parse(words: Sequence[str]) -> tuple[LoadOptions, Selection]:
    """What ``words``, all of them options of `add_selection`, choose; UsageError for others."""
    parser = Parser(prog="flame view", add_help=False, allow_abbrev=False)
    add_selection(parser)
    args = parser.parse_args(words)
    return load_options_of(args), selection_of(args)


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add all options that `load_options_of` and `selection_of` read."""
    _add_stack(parser.add_argument_group("selection"))
    _add_filters(parser.add_argument_group("filters (all must hold)"))
    _add_names(parser.add_argument_group("names"))
    add_ncu(parser)


def add_ncu(parser: argparse.ArgumentParser) -> None:
    """Add the option that names files of Nsight Compute."""
    text = "look into the kernels with the PC samples of this report of Nsight Compute (.ncu-rep), "
    text += "or of its source page as CSV; may be repeated"
    parser.add_argument("--ncu", metavar="FILE", action="append", default=[], help=text)


def _add_stack(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    levels = "rank,process,thread,device,stream,stack,python,native,launch,nvtx,shapes,kernel,"
    levels += "sass,stall"
    add("--levels", metavar="L,L,…", help=f"the stack, root first: any of {levels}, in any order")
    add(
        "--metric",
        metavar="M",
        help="gpu, count, launch, queue, idle, host or stalls; or what a file of stacks measures",
    )
    add("--invert", action="store_true", help="bottom-up: the leaves of the stacks first")
    text = "show a frame right below itself as one"
    add("--collapse-recursion", action="store_true", help=text)
    text = "siblings by weight, name or start: the first start of what is below them "
    text += "(default: %(default)s)"
    add("--sort", metavar="ORDER", default="weight", help=text)


def _add_filters(group: argparse._ArgumentGroup) -> None:
    def add(option: str, metavar: str, text: str) -> None:
        group.add_argument(option, metavar=metavar, action="append", default=[], help=text)

    add("--time", "A/B", "what starts in this window, such as 5s/7s, 500ms/ or -20ms/1s2ms")
    add("--step", "A-B", "what was launched in these steps of the PyTorch profiler")
    add("--rank", "R,…", "of several traces those of these ranks or names; * and ? work")
    text = (
        "what was launched in such a range or operator: NAME or NAME@DOMAIN, both may hold * and ?"
    )
    add("--nvtx-range", "R", text)
    for name, text in _NUMBERED.items():
        help_text = f"{text}; also N,N,…"
        group.add_argument(f"--{name}", metavar="N", type=_numbers, action="extend", help=help_text)
    add("--kernel", "RE", "kernels whose name matches this regular expression")
    add("--include", "K,…", "only these: kernel, memcpy, memset, graph")
    add("--show-stacks", "RE", "stacks with a frame whose shown name matches")
    add("--hide-stacks", "RE", "stacks without any such frame")
    add("--show-from", "RE", "stacks with such a frame, from the first one down")
    add("--hide-frames", "RE", "without such frames: what stands above them gets their value")
    text = "siblings of less than P percent of all are shown as one"
    group.add_argument("--min-percent", metavar="P", type=_percent, help=text)


def _add_names(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "base (default), demangled or mangled"
    add("--kernel-names", metavar="NAMES", help=text)
    text = "clean (default: without volatile ids) or raw (as recorded)"
    add("--nvtx-names", metavar="NAMES", default="clean", help=text)
    add("--shapes", action="store_true", help="tensor shapes of ranges and operators as a level")
    text = "all layers of a model as one: model.layers.18.mlp is model.layers.*.mlp"
    add("--fold-layers", action="store_true", help=text)
    text = r"replace in names, as in 'step \d+=step'; may be repeated"
    add("--rename", metavar="RE=REPL", action="append", default=[], help=text)
    text = "NVTX start/end ranges too, not just push/pop"
    add("--nvtx-start-end", action="store_true", help=text)
    text = "work of a backward pass below the forward operator that caused it (PyTorch traces)"
    add("--forward", action="store_true", help=text)


_NUMBERED = {
    "device": "what ran on this GPU",
    "stream": "what ran on this CUDA stream",
    "pid": "what this process launched",
    "tid": "what this thread launched",
}


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,18}", part) for part in parts):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number or a list such as 0,1")
    return [int(part) for part in parts]


def _percent(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number such as 0.5") from None


def load_options_of(args: argparse.Namespace) -> LoadOptions:
    """How to read the trace."""
    from flame.core.options import LoadOptions

    return LoadOptions(args.nvtx_names, args.nvtx_start_end, args.forward, tuple(args.ncu))


def selection_of(args: argparse.Namespace) -> Selection:
    """What to show of it; UsageError for values that mean nothing."""
    from flame.core.projection.project import parse_levels, with_shapes
    from flame.core.projection.selection import Selection

    levels = None if args.levels is None else parse_levels(args.levels)
    if args.metric == "":
        raise UsageError("--metric: no metric given")
    return Selection(
        levels=with_shapes(levels) if levels and args.shapes else levels,
        where=_where(args),
        metric=args.metric,
        naming=_naming(args),
        arrangement=_arrangement(args),
    )


def with_kernel_names(selection: Selection, names: str) -> Selection:
    """Return ``selection`` with kernels called by their ``names`` (base, demangled, mangled)."""
    return replace(selection, naming=replace(selection.naming, kernel_names=names))


def _where(args: argparse.Namespace) -> tuple[Filter, ...]:
    from flame.core.projection.filters import where

    ids = {name: tuple(found) for name in _NUMBERED if (found := getattr(args, name))}
    return where(
        time=tuple(args.time),
        step=tuple(args.step),
        rank=tuple(args.rank),
        nvtx=tuple(args.nvtx_range),
        kernel=tuple(args.kernel),
        include=tuple(args.include),
        show_stacks=tuple(args.show_stacks),
        hide_stacks=tuple(args.hide_stacks),
        show_from=tuple(args.show_from),
        hide_frames=tuple(args.hide_frames),
        min_percent=args.min_percent,
        **ids,
    )


def _naming(args: argparse.Namespace) -> Naming:
    from flame.core.names.nvtx import parse_rename
    from flame.core.projection.labels import Naming

    rename = tuple(map(parse_rename, args.rename))
    return Naming(args.kernel_names or "base", args.shapes, rename, args.fold_layers)


def _arrangement(args: argparse.Namespace) -> Arrangement:
    from flame.core.model.arrangement import Arrangement

    return Arrangement(args.invert, args.collapse_recursion, args.sort)
