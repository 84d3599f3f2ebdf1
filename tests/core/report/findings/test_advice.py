"""Advice: two lines for every finding, of the framework that a trace shows."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

import pytest

from flame.core.report.findings.advice import ADVICE, advice
from flame.core.report.findings.finding import NUMBERS, ON_REQUEST
from flame.core.report.findings.frameworks import framework_of
from flame.core.report.report import SECTIONS
from flame.core.report.scope import Scope
from tests.support.paths import ROOT
from tests.support.profiles.recorded import Recorded

RULES = ROOT / "flame" / "core" / "report" / "findings"


@pytest.mark.parametrize("id", ADVICE)
def test_advice_is_at_most_two_lines(id: str) -> None:
    for text in ADVICE[id].values():
        assert len(textwrap.wrap(text, 90, break_on_hyphens=False)) <= 2, text
        assert text.endswith(".")


def test_every_finding_has_general_advice() -> None:
    assert all(by[""] for by in ADVICE.values())


@pytest.mark.parametrize(
    ("id", "framework", "start"),
    [
        ("launch-bound", "", "Launch less"),
        ("launch-bound", "torch", "torch.compile"),
        ("launch-bound", "vllm", "Leave --enforce-eager out"),
        ("sync-drain", "megatron", "Take out .item()"),  # as PyTorch, which it is built on
        ("loading", "sglang", "Warm up"),
    ],
)
def test_the_framework_chooses(id: str, framework: str, start: str) -> None:
    assert advice(id, framework).startswith(start)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        ("/lib/vllm/worker.py: execute_model", "vllm"),
        ("sglang.srt.managers.scheduler: run_batch", "sglang"),
        ("megatron/core/pipeline.py: forward", "megatron"),
        ("torch/nn/modules/linear.py: forward", "torch"),
        ("aten::mm", "torch"),
        ("at::native::add_kernel", "torch"),
        ("vllmish and torchlike", ""),
        ("work", ""),
    ],
)
def test_frameworks_are_recognized_by_names(name: str, framework: str) -> None:
    trace = Recorded()
    trace.range(name, 0, 9)
    trace.kernel("gemm", 1, 2)
    assert framework_of(Scope(trace.profile())) == framework


def test_the_one_that_is_built_on_the_other_is_recognized() -> None:
    trace = Recorded()
    trace.range("aten::mm", 0, 9)
    trace.range("vllm.worker", 0, 9)
    trace.kernel("gemm", 1, 2)
    assert framework_of(Scope(trace.profile())) == "vllm"


def test_the_manual_lists_every_finding() -> None:
    text = (ROOT / "docs" / "report.md").read_text("utf-8")
    section = text.partition("\n## Findings\n")[2].partition("\n## ")[0]
    default, on_request = section.split("With `--all`", 1)
    cells = [re.findall(r"^\| (`[^|]+`) \|", part, re.M) for part in (default, on_request)]
    listed = [set(re.findall(r"`([\w-]+)`", " ".join(part))) for part in cells]
    assert listed[0] | listed[1] == {id for id in ADVICE if ", " not in id}
    assert listed[1] == ON_REQUEST


def test_every_finding_is_known_wherever_findings_are_told_of() -> None:
    """Its id has advice, a section with its numbers, and a line in the manual."""
    ids = set(rule_ids())
    assert len(ids) >= 24, "rules are written otherwise: look for their ids there"
    assert ids == NUMBERS.keys()
    assert ids == {id.partition(",")[0] for id in ADVICE}
    assert ids >= ON_REQUEST
    assert set(NUMBERS.values()) <= SECTIONS.keys()
    told = re.findall(r"`([a-z-]+)`", "\n".join(first_cells()))
    assert sorted(told) == sorted(ids)


def rule_ids() -> Iterator[str]:
    """The texts with which findings are made, in the source of the rules."""
    for path in RULES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                name = node.func.id if isinstance(node.func, ast.Name) else name
                if name in ("finding", "information", "Finding", "Abstained"):
                    yield str(node.args[0].value)


def first_cells() -> Iterator[str]:
    """The first cells of the tables of findings in the manual."""
    text = (ROOT / "docs" / "report.md").read_text()
    for table in re.split(r"\| finding \| when \|\n", text)[1:]:
        rows = table.partition("\n\n")[0].splitlines()[1:]
        yield from (row.split("|")[1] for row in rows)
