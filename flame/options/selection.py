"""Declare the options that say what to read and what to show of it, and parse them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from flame.core.errors import UsageError
from flame.core.projection.filter_kinds import FILTER_KINDS
from flame.options.config import allows_cache
from flame.options.parser import Parser, group_called

if TYPE_CHECKING:
    from flame.core.model.tree import TreeLayout
    from flame.core.options import LoadOptions
    from flame.core.projection.filters import Filter
    from flame.core.projection.labels import Naming
    from flame.core.projection.named_levels import NamedLevels
    from flame.core.projection.selection import Selection


READING = "how traces are read"
STACKS = "levels, metric and order"
FILTERS = "filters (all must hold)"
NAMES = "names"
EFFICIENCY = "efficiency"
"""The titles of groups of options that several commands have."""


def parse(words: Sequence[str]) -> tuple[LoadOptions, Selection]:
    """Parse ``words``, all of them options of ``flame view``; UsageError for others."""
    parser = Parser(prog="flame view", add_help=False, allow_abbrev=False)
    add_selection(parser, in_app=True)
    args = parser.parse_args(words)
    return load_options_of(args), selection_of(args, "short")


def add_selection(parser: argparse.ArgumentParser, *, in_app: bool = False) -> None:
    """Add all options that `load_options_of` and `selection_of` read.

    ``in_app``: if nothing is said, names that differ only in numbers are folded, backward passes
    stand below their forward operators, and the app can switch that.
    """
    _add_stack(parser.add_argument_group(STACKS))
    _add_filters(parser.add_argument_group(FILTERS))
    _add_names(parser.add_argument_group(NAMES))
    add_work(group_called(EFFICIENCY, parser))
    add_ncu(parser)
    parser.set_defaults(in_app=in_app)


def add_ncu(parser: argparse.ArgumentParser) -> None:
    """Add the option that names files of Nsight Compute."""
    text = "add the PC samples of this Nsight Compute report (.ncu-rep, or its source page as CSV) "
    text += "below the kernels; may be repeated"
    add = group_called(READING, parser).add_argument
    add("--ncu", metavar="FILE", action="append", default=[], help=text)


def add_work(parser: argparse._ActionsContainer) -> None:
    """Add the options that say what GPUs can do, and what the program computes."""
    add = parser.add_argument
    text = "peaks of the GPUs, dense, in TFLOP/s, and of their memory in GB/s, in place of those "
    text += "of their data sheets: bf16=989,mem=3350; any of bf16, fp16, fp8, fp32, tf32, fp64, mem"
    add("--peak", metavar="TYPE=N,…", help=text)
    text = "type of tensors in products, such as bf16, where the trace tells none"
    add("--dtype", metavar="T", help=text)
    text = "FLOPs of a step that the model needs, for its MFU: 6.2e15"
    add("--model-flops", metavar="N", help=text)


def _add_stack(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    levels = "rank, cause, process, thread, device, pool, stream, phase, stack, nested, module, "
    levels += "python, native, launch, nvtx, shapes, category, kernel, sass, stall"
    add("--levels", metavar="L,L,…", help=f"levels of the stack, root first: any of {levels}")
    text = "phases of the level phase and of --phase, as a JSON file: {PHASE: [PATTERN, …], …}; "
    text += "without one they are what ranges tell (prefill, decode), else what kernels compute"
    add("--phases", metavar="FILE", help=text)
    text = "levels by name: unified (the usual), nested, modules, layers, kernels, functions, "
    text += "shapes, streams, stalls, instructions or phases"
    add("--arrange", metavar="NAME", help=text)
    add(
        "--metric",
        metavar="M",
        help="gpu, exposed, count, launch, queue, idle, waiting, host, stalls, flops, bytes, "
        "waste, wait (of a summary of ranks), peak, live, alloc, churn, held (of memory), or a "
        "metric of a stack file",
    )
    add("--invert", action="store_true", help="bottom-up: leaves first, callers below")
    text = "merge a frame with the same frame right below it"
    add("--collapse-recursion", action="store_true", help=text)
    text = "order of siblings: weight, name, or start (the earliest start below them); "
    text += "default: %(default)s"
    add("--sort", metavar="ORDER", default="weight", help=text)
    text = (
        "colours in the app: level (default), category (of kernels and copies), efficiency (of what"
    )
    text += " bounds operators with shapes); of a summary of ranks also imbalance"
    add("--colours", metavar="BY", help=text)


def _add_filters(group: argparse._ArgumentGroup) -> None:
    for kind in FILTER_KINDS:
        how: dict[str, Any] = {"metavar": kind.metavar, "help": kind.help, "dest": kind.key}
        if kind.takes == "texts":
            how |= {"action": "append", "default": []}
        elif kind.takes == "numbers":
            how |= {"action": "extend", "type": _numbers}
        elif kind.takes == "nothing":
            del how["metavar"]
            how |= {"action": "store_true"}
        else:
            how |= {"type": _percent}
        group.add_argument(kind.option, **how)
    text = "remove frames of code whose FILE:NAME matches, in place of --hide-framework's"
    group.add_argument("--framework", metavar="RE", dest="hide_framework", help=text)


def _add_names(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "how much of a kernel's name: short (base and what tells it from others: the default of "
    text += "what is shown), base (the default of exports), demangled or mangled"
    add("--kernel-names", metavar="NAMES", help=text)
    text = "names of ranges: clean (default: without volatile ids) or raw (as recorded)"
    add("--nvtx-names", metavar="NAMES", default="clean", help=text)
    add("--shapes", action="store_true", help=_SHAPES_HELP)
    text = "merge the layers of a model: model.layers.18.mlp becomes model.layers.*.mlp"
    add("--fold-layers", action="store_true", help=text)
    text = "show more than 8 siblings as one where only numbers differ: step 1, step 2, … become "
    text += "step *; usual in view and attach"
    switch = argparse.BooleanOptionalAction
    add("--fold-numbers", action=switch, help=text)
    text = r"replace in names: 'step \d+=step' merges all steps; may be repeated"
    add("--rename", metavar="RE=REPL", action="append", default=[], help=text)
    text = "NVTX start/end ranges too, on the thread that started them; not only push/pop"
    add("--nvtx-start-end", action="store_true", help=text)
    text = "PyTorch traces: put backward work below the forward operator that caused it; usual in "
    text += "view"
    add("--forward", action=switch, help=text)


_SHAPES_HELP = "a level with the tensor shapes of the innermost range or operator that has some"


def _numbers(text: str) -> tuple[int, ...]:
    from flame.core.projection.filter_options import parse_numbers

    try:
        return parse_numbers(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _percent(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number such as 0.5") from None


def load_options_of(args: argparse.Namespace) -> LoadOptions:
    """Return how to read the trace."""
    from flame.core.options import LoadOptions

    forward = _or_usual(args.forward, args) or args.in_app  # there to be switched on
    return LoadOptions(
        *(args.nvtx_names, args.nvtx_start_end, forward, tuple(args.ncu), args.phases),
        peak=args.peak,
        dtype=args.dtype,
        model_flops=args.model_flops,
        cache=allows_cache(args),
    )


def selection_of(args: argparse.Namespace, kernel_names: str = "base") -> Selection:
    """Return what to show of the trace; UsageError for values that mean nothing.

    ``kernel_names`` are those of options that name none.
    """
    from flame.core.projection.levels import add_shapes, parse_levels
    from flame.core.projection.selection import Selection

    named = _named_levels(args)
    levels = named.levels if args.levels is None else parse_levels(args.levels)
    if args.metric == "":
        raise UsageError("--metric: no metric given")
    return Selection(
        levels=add_shapes(levels) if levels and args.shapes else levels,
        where=_filters(args),
        metric=args.metric,
        naming=_naming(args, kernel_names, args.fold_layers or named.fold),
        layout=_layout(args),
        colours="level" if args.colours is None else args.colours,
        forward=_or_usual(args.forward, args),
    )


def _or_usual(switch: bool | None, args: argparse.Namespace) -> bool:
    """What a switch says, or else what is usual: on in the app."""
    usual: bool = args.in_app
    return usual if switch is None else switch


def said_by(args: argparse.Namespace) -> frozenset[str]:
    """Name the settings, as preferences call them, of which the options say something.

    A saved place (``--state``) says all of them.
    """
    is_place = getattr(args, "state", None) is not None
    said = {
        "kernel_names": args.kernel_names is not None,
        "colours": args.colours is not None,
        "hide_framework": bool(args.hide_framework),
        "fold_numbers": args.fold_numbers is not None,
        "levels": args.forward is not None
        or args.levels is not None
        or args.arrange is not None
        or args.shapes
        or args.fold_layers,
    }
    return frozenset(name for name, is_said in said.items() if is_said or is_place)


def _named_levels(args: argparse.Namespace) -> NamedLevels:
    from flame.core.projection.named_levels import levels_called

    if args.arrange is not None and args.levels is not None:
        raise UsageError("--arrange and --levels exclude each other")
    return levels_called("unified" if args.arrange is None else args.arrange)


def with_framework(selection: Selection, patterns: Sequence[str]) -> Selection:
    """Return ``selection`` with ``patterns`` in place of the usual ones of ``--hide-framework``."""
    from dataclasses import replace

    from flame.core.names.framework import joined
    from flame.core.projection.filters import HideFramework

    own = (HideFramework(joined(patterns)),) if patterns else ()
    where = [own if one == HideFramework() else (one,) for one in selection.where]
    return replace(selection, where=tuple(chain.from_iterable(where)))


def _filters(args: argparse.Namespace) -> tuple[Filter, ...]:
    from flame.core.projection.filter_options import parse_filters

    values: dict[str, Any] = {kind.key: getattr(args, kind.key) for kind in FILTER_KINDS}
    return parse_filters(**values)


def named_as_shown(args: argparse.Namespace, selection: Selection) -> Selection:
    """Name frames of ``selection`` as the app does where ``args`` say nothing of it.

    Kernels are called in short, and names that differ only in numbers are folded.
    """
    from dataclasses import replace

    names, numbers = args.kernel_names or "short", args.fold_numbers is not False
    return replace(selection, naming=replace(selection.naming, kernel_names=names, numbers=numbers))


def _naming(args: argparse.Namespace, kernel_names: str, fold: bool) -> Naming:
    from flame.core.names.rename import parse_rename
    from flame.core.projection.labels import Naming

    rename = tuple(map(parse_rename, args.rename))
    names = args.kernel_names or kernel_names
    return Naming(names, args.shapes, rename, fold, _or_usual(args.fold_numbers, args))


def _layout(args: argparse.Namespace) -> TreeLayout:
    from flame.core.model.tree import TreeLayout

    return TreeLayout(args.invert, args.collapse_recursion, args.sort)
