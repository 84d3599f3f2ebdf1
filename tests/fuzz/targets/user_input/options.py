"""Words of the command line that say what to show: filters, levels, names, expressions."""

from __future__ import annotations

import random
from functools import cache

from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.projection.project import project
from flame.options.selection import parse
from tests.fuzz.checks import refusal_of, sum_of_leaves, write
from tests.fuzz.mutations import odd_value
from tests.fuzz.target import Target
from tests.support.hostile.bad_files import whole_trace

_WORDS = (
    "--levels nvtx,kernel",
    "--metric launch --invert",
    "--sort name --collapse-recursion",
    "--sort start --levels process,thread,stream,kernel",
    "--kernel-names mangled --nvtx-names raw",
    "--fold-layers --shapes",
    "--no-fold-numbers --levels nvtx",
    r"--rename step\s\d+=step",
    "--time 10us/20us",
    "--time /50%",
    "--nvtx-range step*",
    "--nvtx-range layers@inner",
    "--kernel ^kernel_[12]$",
    "--show-stacks step --hide-frames kernel_3",
    "--show-from inner --hide-stacks k.*_1",
    "--device 0 --stream 7,8",
    "--pid 100 --tid 1,2 --include kernel,memcpy",
    "--min-percent 0.5",
    "--rank 0 --step 1-3",
)


@cache
def profile() -> Profile:
    """The trace that is shown."""
    return load(write("shown.sqlite", whole_trace()))


def check(data: bytes) -> None:
    words = data.decode("utf-8", "surrogateescape").split("\n")
    refusal_of(lambda: _project(words))


def _project(words: list[str]) -> None:
    options, selection = parse(words)
    if options.ncu:
        return
    sum_of_leaves(project(profile(), selection))


def seeds() -> list[bytes]:
    return [words.replace(" ", "\n").encode() for words in _WORDS]


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Exchange words, and put odd ones in; take words from other lines."""
    words = data.split(b"\n")
    other = draw.choice(_WORDS).encode().split(b" ")
    how = draw.randrange(4)
    if how == 0:
        words += other
    elif how == 1:
        words[draw.randrange(len(words))] = draw.choice(other)
    elif how == 2:
        words[draw.randrange(len(words))] = str(odd_value(draw)).encode("utf-8", "surrogatepass")
    else:
        del words[draw.randrange(len(words))]
    return b"\n".join(words)


TARGET = Target("options", seeds, check, mutate, 1 << 9)
