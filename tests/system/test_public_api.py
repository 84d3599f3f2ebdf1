"""The Python API as docs/scripting.md has it: what ``import flame`` gives."""

from __future__ import annotations

from pathlib import Path

import pytest

import flame
from flame.core.loading.many import load
from flame.core.projection.project import project
from tests.support.paths import ROOT, SAMPLES

DECODE = SAMPLES / "decode_small.sqlite"
TORCH = SAMPLES / "torch_small.pt.trace.json.gz"


@pytest.mark.parametrize("name", flame.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(flame, name) is not None
    assert name in dir(flame)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lood'"):
        _ = flame.lood


def test_a_trace_is_a_thin_handle_on_its_profile() -> None:
    trace, profile = flame.load(DECODE), load(DECODE)
    assert isinstance(trace, flame.Trace)
    assert trace.profile.gpu_time == profile.gpu_time
    ours, theirs = trace.tree(), project(profile)
    assert ours.total.tolist() == theirs.total.tolist()
    assert list(map(ours.name, range(len(ours)))) == list(map(theirs.name, range(len(theirs))))


def test_a_tree_is_asked_for_in_words() -> None:
    trace = flame.load(TORCH)
    chosen = flame.where(kernel="gemm")
    tree = trace.tree("nvtx,kernel", chosen, "count", shapes=True, fold=True)
    assert tree.levels == ("nvtx", "shapes", "kernel")
    assert tree.metric.key == "count"
    assert 0 < tree.root.total < trace.tree("kernel", metric="count").root.total
    with pytest.raises(Exception, match="unknown level"):
        trace.tree("no such level")


def test_what_a_trace_holds() -> None:
    info = flame.load(DECODE).info()
    assert info.gpu_time == load(DECODE).gpu_time
    assert info.counts["kernel"] > 0


def test_several_traces_are_one() -> None:
    both = flame.load_all([DECODE, TORCH])
    assert len(both.info().sources) == 2
    single = [flame.load(path).tree(metric="gpu").root.total for path in (DECODE, TORCH)]
    assert both.tree(metric="gpu").root.total == sum(single)


def test_the_example_in_the_manual_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "scripting.md").read_text("utf-8")
    code = text.partition("```python\n")[2].partition("```")[0]
    assert "flame.load(" in code
    (tmp_path / "trace.sqlite").write_bytes(DECODE.read_bytes())
    monkeypatch.chdir(tmp_path)
    for filters in ("nvtx='decode*'", "time='5s/7s'"):
        assert filters.replace("'", '"') in code
    code = code.replace('time="5s/7s", nvtx="decode*"', 'kernel="."')  # of another trace
    exec(compile(code, "scripting.md", "exec"), {})
