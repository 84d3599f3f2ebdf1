"""The options that say what to read and what to show of it, and what they mean."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from flame.core.errors import UsageError

if TYPE_CHECKING:
    from flame.core.model.tree import Arrangement
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
    text = "add the PC samples of this Nsight Compute report (.ncu-rep, or its source page as CSV) "
    text += "below the kernels; may be repeated"
    parser.add_argument("--ncu", metavar="FILE", action="append", default=[], help=text)


def _add_stack(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    levels = "rank,process,thread,device,stream,stack,python,native,launch,nvtx,shapes,kernel,"
    levels += "sass,stall"
    add("--levels", metavar="L,L,…", help=f"levels of the stack, root first: any of {levels}")
    add(
        "--metric",
        metavar="M",
        help="gpu, count, launch, queue, idle, host, stalls, or a metric of a stack file",
    )
    add("--invert", action="store_true", help="bottom-up: leaves first, callers below")
    text = "merge a frame with the same frame right below it"
    add("--collapse-recursion", action="store_true", help=text)
    text = "order of siblings: weight, name, or start (the earliest start below them); "
    text += "default: %(default)s"
    add("--sort", metavar="ORDER", default="weight", help=text)


def _add_filters(group: argparse._ArgumentGroup) -> None:
    def add(option: str, metavar: str, text: str) -> None:
        group.add_argument(option, metavar=metavar, action="append", default=[], help=text)

    add("--time", "A/B", _TIME_HELP)
    add("--step", "A-B", "activities launched in these steps of the PyTorch profiler")
    add("--rank", "R,…", "only these ranks, by number or name; * and ? are wildcards")
    text = "activities launched inside a range or operator, NAME or NAME@DOMAIN; * and ? are "
    text += "wildcards in both"
    add("--nvtx-range", "R", text)
    for name, text in _NUMBERED.items():
        help_text = f"{text}; also a list N,N,…"
        group.add_argument(f"--{name}", metavar="N", type=_numbers, action="extend", help=help_text)
    add("--kernel", "RE", "kernels whose name matches this regular expression")
    add("--include", "K,…", "only these kinds of activity: kernel, memcpy, memset, graph")
    add("--show-stacks", "RE", "only stacks with a frame whose displayed name matches")
    add("--hide-stacks", "RE", "only stacks without such a frame")
    add("--show-from", "RE", "only stacks with such a frame, from the first one down")
    add("--hide-frames", "RE", "remove such frames; their value goes to the frame above")
    text = "merge siblings of less than P percent of the total into one [smaller frames]"
    group.add_argument("--min-percent", metavar="P", type=_percent, help=text)


def _add_names(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "how much of a kernel's name: base (default), demangled or mangled"
    add("--kernel-names", metavar="NAMES", help=text)
    text = "names of ranges: clean (default: without volatile ids) or raw (as recorded)"
    add("--nvtx-names", metavar="NAMES", default="clean", help=text)
    add("--shapes", action="store_true", help=_SHAPES_HELP)
    text = "merge the layers of a model: model.layers.18.mlp becomes model.layers.*.mlp"
    add("--fold-layers", action="store_true", help=text)
    text = r"replace in names: 'step \d+=step' merges all steps; may be repeated"
    add("--rename", metavar="RE=REPL", action="append", default=[], help=text)
    text = "NVTX start/end ranges too, on the thread that started them; not only push/pop"
    add("--nvtx-start-end", action="store_true", help=text)
    text = "PyTorch traces: put backward work below the forward operator that caused it"
    add("--forward", action="store_true", help=text)


_TIME_HELP = "activities that start in this window: 5s/7s, 500ms/, /1s2ms or -20ms/1; a number "
_TIME_HELP += "without a unit is seconds"
_SHAPES_HELP = "a level with the tensor shapes of the innermost range or operator that has some"
_NUMBERED = {
    "device": "activities on this GPU",
    "stream": "activities on this CUDA stream",
    "pid": "activities launched by this process",
    "tid": "activities launched by this thread",
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
    from flame.core.projection.levels import add_shapes, parse_levels
    from flame.core.projection.selection import Selection

    levels = None if args.levels is None else parse_levels(args.levels)
    if args.metric == "":
        raise UsageError("--metric: no metric given")
    return Selection(
        levels=add_shapes(levels) if levels and args.shapes else levels,
        where=_where(args),
        metric=args.metric,
        naming=_naming(args),
        arrangement=_arrangement(args),
    )


def with_kernel_names(selection: Selection, names: str) -> Selection:
    """Return ``selection`` with kernels called by their ``names`` (base, demangled, mangled)."""
    return replace(selection, naming=replace(selection.naming, kernel_names=names))


def _where(args: argparse.Namespace) -> tuple[Filter, ...]:
    from flame.core.projection.filter_options import parse_filters

    ids = {name: tuple(found) for name in _NUMBERED if (found := getattr(args, name))}
    return parse_filters(
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
    from flame.core.names.rename import parse_rename
    from flame.core.projection.labels import Naming

    rename = tuple(map(parse_rename, args.rename))
    return Naming(args.kernel_names or "base", args.shapes, rename, args.fold_layers)


def _arrangement(args: argparse.Namespace) -> Arrangement:
    from flame.core.model.tree import Arrangement

    return Arrangement(args.invert, args.collapse_recursion, args.sort)
