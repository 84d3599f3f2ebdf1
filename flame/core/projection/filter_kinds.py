"""Declare the kinds of filters: the option, its help, and the words for it on the screen.

Options, the command line that repeats a view, the dialog of filters, chips and ``flame.where`` go
by this table. It imports nothing, so that ``--help`` costs nothing; how a filter is parsed and
formatted stands in `flame.core.projection.filter_options`, by the same keys.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class FilterKind(NamedTuple):
    """Describe one kind of filter.

    ``key`` is its keyword in ``flame.where``, ``option`` that of the command line. ``word`` stands
    before the value in a chip, ``title`` in the dialog. ``takes`` says what the option takes:
    texts (each is a filter), numbers (all together are one), a single number, or nothing.
    """

    key: str
    option: str
    metavar: str
    help: str
    word: str
    title: str
    takes: Literal["texts", "numbers", "number", "nothing"] = "texts"


def _numbers(key: str, help_text: str, word: str) -> FilterKind:
    text = f"{help_text}; also a list N,N,…"
    return FilterKind(key, f"--{key}", "N", text, word, word, "numbers")


FILTER_KINDS = (
    FilterKind(
        "time",
        "--time",
        "A/B",
        "activities that start in this window: 5s/7s, 500ms/, /1s2ms or -20ms/1; a number "
        "without a unit is seconds",
        "time",
        "time",
    ),
    FilterKind(
        "at",
        "--at",
        "T",
        "memory as it was then, by the metrics peak and live: peak, oom (the last request that "
        "failed), end, or a time such as 50.5ms",
        "at",
        "moment of memory",
    ),
    FilterKind(
        "step",
        "--step",
        "A-B,…",
        "activities launched in these steps: those of the PyTorch profiler, else ranges that "
        "repeat, such as step 3",
        "steps",
        "steps",
    ),
    FilterKind(
        "rank",
        "--rank",
        "R,…",
        "only these ranks, by number or name; * and ? are wildcards",
        "rank",
        "ranks",
    ),
    FilterKind(
        "nvtx",
        "--nvtx-range",
        "R",
        "activities launched inside a range or operator, NAME or NAME@DOMAIN; * and ? are "
        "wildcards in both",
        "NVTX",
        "NVTX range",
    ),
    FilterKind(
        "phase",
        "--phase",
        "P,…",
        "only work of these phases, by name (see --phases); * and ? are wildcards",
        "phase",
        "phases",
    ),
    _numbers("device", "activities on this GPU", "device"),
    _numbers("stream", "activities on this CUDA stream", "stream"),
    _numbers("pid", "activities launched by this process", "process"),
    _numbers("tid", "activities launched by this thread", "thread"),
    FilterKind(
        "kernel",
        "--kernel",
        "RE",
        "kernels whose short, base or demangled name matches",
        "kernel",
        "kernel",
    ),
    FilterKind(
        "include",
        "--include",
        "K,…",
        "only these kinds of activity: kernel, memcpy, memset, graph",
        "kinds",
        "kinds",
    ),
    FilterKind(
        "show_stacks",
        "--show-stacks",
        "RE",
        "only stacks with a frame whose displayed name matches",
        "only stacks with",
        "only stacks with",
    ),
    FilterKind(
        "hide_stacks",
        "--hide-stacks",
        "RE",
        "only stacks without such a frame",
        "without",
        "without",
    ),
    FilterKind(
        "show_from",
        "--show-from",
        "RE",
        "only stacks with such a frame, from the first one down",
        "from",
        "from",
    ),
    FilterKind(
        "hide_frames",
        "--hide-frames",
        "RE",
        "remove such frames; their value goes to the frame above",
        "hide",
        "hide",
    ),
    FilterKind(
        "hide_framework",
        "--hide-framework",
        "",
        "remove frames of frameworks, such as torch's _call_impl, runpy, threading; their value "
        "goes to the frame above",
        "hide",
        "frameworks",
        "nothing",
    ),
    FilterKind(
        "min_percent",
        "--min-percent",
        "P",
        "merge siblings of less than P percent of the total into one [smaller frames]",
        "≥",
        "minimum share",
        "number",
    ),
)
"""In the order of the command line."""
