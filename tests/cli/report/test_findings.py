"""Findings of `flame report` as a user calls it."""

from __future__ import annotations

import json

import pytest

from flame.cli.main import main
from tests.support.paths import SAMPLES

TRACE = str(SAMPLES / "decode_small.sqlite")


def test_all_findings_and_what_was_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["report", TRACE, "--section", "findings"]
    assert main(command) == 0
    assert "Not judged" not in capsys.readouterr().out
    assert main([*command, "--all"]) == 0
    assert "Not judged" in capsys.readouterr().out
    for more in ([], ["--all"]):
        assert main([*command, "--json", *more]) == 0
        found = json.loads(capsys.readouterr().out)["findings"]
        assert found["all"] == bool(more)
        assert ("uneven-layers" in {one["id"] for one in found["abstained"]}) == bool(more)
        assert found["gpus"][0]["character"] == "compute"
