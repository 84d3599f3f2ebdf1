"""Take the arguments that several commands have: paths of traces, modes of sampling."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from flame.core.errors import UsageError
from flame.core.lazy_regex import lazy_regex

if TYPE_CHECKING:
    from flame.core.loading.inputs import Inputs

TRACES = (
    "a recording (its folder, or one dump of it); an Nsight Systems SQLite export, or a report "
    "(.nsys-rep) where nsys is installed; a PyTorch profiler trace, or a memory snapshot of "
    "PyTorch; a summary of ranks (.flamesum); folded stacks, speedscope, pprof or Triton Proton; "
    "an Nsight Compute report or source page (see --ncu) without a trace. Any of them packed by "
    "gzip, zstd or xz, - for standard input, or https://, s3:// and gs://. Several are shown as "
    "one, each as a rank"
)
"""What a path may name, as help."""

_MODE = lazy_regex(r"off|(continuous|serialized)(:([0-9]{1,2}))?")
_PERIODS = range(5, 32)
"""Exponents of two, in GPU cycles: cupti_pcsampling.h, ATTR_TYPE_SAMPLING_PERIOD."""


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Add the paths of traces, of which there has to be one."""
    parser.add_argument("paths", metavar="PATH", nargs="+", help=TRACES)


def inputs_of(args: argparse.Namespace) -> Inputs:
    """Return the traces that ``args`` name."""
    return inputs_at(args.paths, args)


def inputs_at(paths: Iterable[str], args: argparse.Namespace) -> Inputs:
    """Return the traces at ``paths``, which are of ``args``, and by what names these were given."""
    from flame.core.loading.inputs import Inputs

    given: Mapping[str, str] = getattr(args, "given", {})
    names = ((Path(path), given[path]) for path in paths if path in given)
    return Inputs(tuple(map(Path, paths)), given=tuple(names))


def side_inputs_of(args: argparse.Namespace) -> Inputs:
    """Return what is read besides the traces: the files of --ncu and --phases."""
    from flame.core.loading.inputs import Inputs

    return Inputs(tuple(Path(path) for path in (*args.ncu, args.phases) if path))


def pc_mode(text: str) -> str:
    """Return ``text``, a mode of PC sampling as in FLAME_PC; UsageError where it is none."""
    match = _MODE.fullmatch(text)
    if not match:
        raise UsageError(f"--pc '{text}': choose continuous, serialized or off")
    if match[3] and int(match[3]) not in _PERIODS:
        raise UsageError(f"--pc '{text}': choose a period from 5 to 31 (2^5 to 2^31 cycles)")
    return text
