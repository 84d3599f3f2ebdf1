"""Names are numbered alike exactly where they are equal."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.names.equal_names import number_names

_NAMES = st.binary(max_size=3) | st.sampled_from(
    [one * size for one in (b"a", b"\0", b"\xff", b"ab") for size in (1, 4, 7, 8, 9, 128, 129, 300)]
)


@given(st.lists(st.tuples(_NAMES, _NAMES, _NAMES).map(b"".join), max_size=30), st.binary())
def test_equal_names_have_equal_numbers(names: list[bytes], before: bytes) -> None:
    end = np.cumsum([len(before), *map(len, names)]).astype(np.int32)
    found = number_names(before + b"".join(names), end[:-1], end[1:]).tolist()
    number = dict(zip(names, found, strict=True))
    assert [number[name] for name in names] == found
    assert len(set(found)) == len(number)
