"""Lines of folded stacks that are taken apart at once are what they are one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.readers.stacks.plain_lines import split_plain

lines = st.lists(st.text("ab;# 07\t\r\n-.é", max_size=9), max_size=6).map("\n".join)
plain = st.from_regex(
    r"[a-z]+( [a-z]+)?(;[a-z]+)* [0-9]{1,18}(\n[a-z;]*[a-z] [0-9]+)*", fullmatch=True
)


@given(st.one_of(lines, plain))
def test_any_lines(text: str) -> None:
    batch = text.encode()
    found = split_plain(batch)
    if found is None:
        return
    parts = [line.rsplit(None, 1) for line in batch.split(b"\n")]
    assert found.stacks == b";".join(stack for stack, _ in parts)
    assert found.lengths.tolist() == [stack.count(b";") + 1 for stack, _ in parts]
    assert found.values.tolist() == [int(number) for _, number in parts]


@pytest.mark.parametrize("text", [b"a 1", b"main;operator new;f 07\n;a 3", b"1 2\nb;;c 3"])
def test_plain_ones_are(text: bytes) -> None:
    assert split_plain(text)


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"a", b"a 1\n", b"a 1\n\nb 2", b" 1", b"a\t1", b"a  1", b"a 1.5", b"a; 1"),
        *(b"# no 1", b"a 1\n# no 1", b"a 1\nb", b"a 1\r\nb 2", b"a 1234567890123456789"),
        *(b"a 1 ", b"a -1"),
    ],
)
def test_odd_ones_are_left_to_others(text: bytes) -> None:
    assert split_plain(text) is None
