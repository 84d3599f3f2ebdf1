"""A page of `flame report` in a real browser: it loads nothing, sorts, and fits a phone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flame.cli.main import main
from flame.core.loading.many import load
from flame.core.projection.project import project
from tests.support.writers.nsysfile import NsysFile
from tests.system.browser.chromium import Ask, asking

HERE = Path(__file__).parent
NAMES = ("<script>alert(1)</script>", "\"><img src=x onerror='alert(1)'>", "gemm", "x" * 1_000_000)
LENGTHS = (400, 300, 900, 200)


@pytest.fixture
def ask(packages: Path, tmp_path: Path) -> Iterator[Ask]:
    """A page of the browser; see report.mjs for its steps and what comes back."""
    with asking(HERE / "report.mjs", packages, tmp_path / "stderr") as ask:
        yield ask


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Kernels with hostile names, `gemm` twice."""
    path = tmp_path / "<b>hostile&.sqlite"
    with NsysFile(path) as file:
        for corr, (name, length) in enumerate(zip((*NAMES, "gemm"), (*LENGTHS, 1), strict=True), 1):
            file.api("cudaLaunchKernel_v7000", 1_000 * corr, 1_000 * corr + 10, corr=corr)
            file.kernel(name, 1_000 * corr + 20, 1_000 * corr + 20 + length, corr=corr)
    return path


def step(ask: Ask, **what: object) -> dict[str, Any]:
    return ask(json.dumps(what))


@pytest.mark.deep
def test_a_page_of_hostile_names_loads_nothing_sorts_and_fits(
    ask: Ask, trace: Path, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    assert main(["report", str(trace), "--html", str(page)]) == 0
    found = step(ask, open=str(page), width=1200, dark=False)
    assert found["requests"] == [page.as_uri()]
    assert (found["problems"], found["wide"]) == ([], False)
    assert found["paper"] == "rgb(255, 255, 255)"
    by_time = ["gemm", NAMES[0], NAMES[1]]
    assert found["column"][:3] == by_time and found["column"][3].startswith("xxx")
    assert len(found["column"][3]) == 160

    heads = "#kernels table:first-of-type th:nth-child"
    by_name = step(ask, click=f"{heads}(1)")["column"]
    assert by_name == sorted(by_name, key=str.lower)
    assert step(ask, click=f"{heads}(1)")["column"] == by_name[::-1]
    assert step(ask, click=f"{heads}(4)")["column"][0] == "gemm", "the only one that ran twice"
    assert step(ask, click=f"{heads}(2)")["column"] == found["column"]
    assert step(ask, click=f"{heads}(2)")["column"] == found["column"][::-1]

    phone = step(ask, open=str(page), width=390, dark=True)
    assert (phone["wide"], phone["problems"], phone["paper"]) == (False, [], "rgb(23, 23, 27)")


@pytest.mark.deep
def test_the_icicle_is_drawn_as_wide_as_the_tree_says(
    ask: Ask, trace: Path, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    assert main(["report", str(trace), "--html", str(page)]) == 0
    found = step(ask, open=str(page), width=1200)
    tree = project(load(trace))
    boxes = {name[:20]: (left, width) for name, left, width in found["frames"]}
    left, whole = boxes["all"]
    assert whole > 1_000
    for node in range(len(tree)):
        box = boxes[tree.name(node)[:20]]
        share = tree.x[node] / tree.total[0], tree.total[node] / tree.total[0]
        assert box == pytest.approx((left + whole * share[0], whole * share[1]), abs=0.1)
