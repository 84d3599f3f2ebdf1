"""The README says what the app does."""

from __future__ import annotations

import runpy

from tests.support.paths import ROOT


def test_the_table_of_keys_is_that_of_the_app() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert runpy.run_path(str(ROOT / "docs" / "make_keys.py"))["with_keys"](text) == text
