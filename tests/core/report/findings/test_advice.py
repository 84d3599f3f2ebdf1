"""Advice: two lines for every finding, of the framework that a trace shows."""

from __future__ import annotations

import re
import textwrap

import pytest

from flame.core.report.findings.advice import ADVICE, advice
from flame.core.report.findings.finding import ON_REQUEST
from flame.core.report.findings.frameworks import framework_of
from flame.core.report.scope import Scope
from tests.support.paths import ROOT
from tests.support.recorded import Recorded


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
