"""What a closed chain is called in few cells and in many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.tui.toolkit.text import width_of
from flame.tui.views.chain_label import chain_label

NAMES = ["<module>", "run", "nn.Module: Encoder_0", "_call_impl", "forward"]


@pytest.mark.parametrize(
    ("width", "label"),
    [
        (80, "<module> › run › Encoder_0 › _call_impl › forward"),
        (48, "<module> › … › Encoder_0 › _call_impl › forward"),
        (40, "<module> › … › Encoder_0 › … › forward"),
        (36, "<module> › … › Encoder_0 › …"),
        (27, "… › Encoder_0 › … › forward"),
        (17, "… › Encoder_0 › …"),
        (16, "›Encoder_0"),
        (6, "›Enco…"),
        (1, "›"),
    ],
)
def test_the_name_that_says_most_stays_longest(width: int, label: str) -> None:
    assert chain_label(NAMES, width) == label


@pytest.mark.parametrize(
    ("width", "label"), [(40, "<module> › … 2 frames › _call_impl › …"), (9, "›_call_i…")]
)
def test_a_selected_frame_is_named(width: int, label: str) -> None:
    assert chain_label(NAMES, width, named=3) == label


def test_an_inverted_chain_keeps_its_first_name() -> None:
    assert chain_label(["forward", "run", "main"], 12, inverted=True) == "forward › …"
    assert chain_label(NAMES[::-1], 16, inverted=True) == "›Encoder_0"


@given(
    st.lists(st.text(max_size=60), min_size=2, max_size=9),
    st.integers(1, 120),
    st.booleans(),
    st.data(),
)
def test_it_fits_and_is_printable(
    names: list[str], width: int, inverted: bool, data: st.DataObject
) -> None:
    named = data.draw(st.none() | st.integers(0, len(names) - 1))
    label = chain_label(names, width, named, inverted)
    assert width_of(label) <= width
    assert label.isprintable()
