"""FLOPs are those that PyTorch's own flop_counter counts; see `make_flop_counter`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flame.core.loading.many import load

FROZEN = json.loads(Path(__file__).with_name("flop_counter.json").read_text())


@pytest.mark.parametrize("case", FROZEN["cases"], ids=lambda case: case["case"].replace(" ", "-"))
def test_all_operators_of_a_program_have_the_flops_of_the_flop_counter(
    tmp_path: Path, case: dict[str, Any]
) -> None:
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": case["events"]}))
    work = load(path).work
    assert work is not None
    # Nothing ran on a GPU: no operator has a kernel.
    assert work.calls == 0
    assert work.bare_flops == case["flops"]
    assert bool(work.bare) == bool(case["flops"])


def test_causal_masks_are_found_where_the_schemas_have_them(tmp_path: Path) -> None:
    for case in FROZEN["cases"]:
        if not case["case"].endswith(("True", "False")):
            continue
        path = tmp_path / "attention.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": case["events"]}))
        profile = load(path)
        assert profile.work is not None
        found = {profile.frames[frame].name: cost for frame, cost in profile.work.costs.items()}
        assert len(found) >= 3
        masked = case["case"].endswith("True")
        assert {cost.causal for cost in found.values()} == {masked}
        assert all((cost.unmasked or 0) < 1 for cost in found.values()) == masked
