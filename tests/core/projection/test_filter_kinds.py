"""Every kind of filter is in the table, and its text is the exact way there and back."""

from __future__ import annotations

import inspect
from typing import get_args

import pytest

from flame.core.errors import UsageError
from flame.core.model.frames import Kind
from flame.core.projection import filters
from flame.core.projection.filter_kinds import FILTER_KINDS
from flame.core.projection.filter_options import (
    FILTER_TEXTS,
    format_filter,
    kind_of,
    parse_filters,
)
from flame.core.projection.filters import Filter

KEYS = [kind.key for kind in FILTER_KINDS]
EXAMPLES: tuple[Filter, ...] = (
    filters.Time(5_000_000_000, None),
    filters.Time(-20, 1_002_000_000),
    filters.At("oom"),
    filters.At(50_482_000),
    filters.Steps(((3, 3),)),
    filters.Steps(((3, 12),)),
    filters.Ranks(("0", "node *")),
    filters.NvtxRange("a@b\\", "c@d"),
    filters.NvtxRange("decode*", None),
    filters.Phases(("prefill", "de code*")),
    filters.Devices((0, 3)),
    filters.Streams((7,)),
    filters.Pids((1, 2, 3)),
    filters.Tids((123456789,)),
    filters.Kernel("gemm|--"),
    filters.Include((Kind.KERNEL, Kind.MEMCPY)),
    filters.ShowStacks("a b"),
    filters.HideStacks("--"),
    filters.ShowFrom("^x$"),
    filters.HideFrames(""),
    filters.HideFramework("^x:"),
    filters.MinShare(0.1),
)


def test_the_table_has_every_type_of_filter_once() -> None:
    types = {text.type for text in FILTER_TEXTS.values()}
    assert types == set(get_args(Filter)) == {type(example) for example in EXAMPLES}
    assert sorted(FILTER_TEXTS) == sorted(KEYS)
    assert len({kind.option for kind in FILTER_KINDS}) == len(KEYS) == len(set(KEYS))


def test_the_public_parser_takes_every_kind() -> None:
    assert list(inspect.signature(parse_filters).parameters) == KEYS


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: type(example).__name__)
def test_a_filter_survives_its_text(example: Filter) -> None:
    key = kind_of(type(example)).key
    assert FILTER_TEXTS[key].parse(format_filter(example)) == example


@pytest.mark.parametrize(("key", "text"), [("device", "x"), ("pid", "1,,2"), ("tid", "")])
def test_numbers_that_are_none_are_refused(key: str, text: str) -> None:
    with pytest.raises(UsageError, match="is not a number or a list such as 0,1"):
        FILTER_TEXTS[key].parse(text)


def test_filters_come_in_the_order_of_the_table() -> None:
    every = parse_filters(
        **{  # type: ignore[arg-type]
            kind_of(type(example)).key: (
                example.percent
                if isinstance(example, filters.MinShare)
                else getattr(example, "ids", None) or format_filter(example)
            )
            for example in reversed(EXAMPLES)
            if example != filters.HideFrames("")
        }
    )
    assert [kind_of(type(filter_)).key for filter_ in every] == [
        key for key in KEYS if key != "hide_frames"
    ]
