"""Flame graphs in a real browser: they load nothing, zoom, search, and are as wide as the tree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flame.cli.main import main
from flame.core.loading.many import load
from flame.core.projection.project import project
from tests.system.browser.chromium import Ask, asking

pytestmark = pytest.mark.deep

HERE = Path(__file__).parent
EVIL = "<script>alert(1)</script>"
STACKS = f"""\
main;train;forward;gemm 400
main;train;forward;softmax 100
main;train;backward;gemm 300
main;load;{EVIL} 200
"""


@pytest.fixture(scope="module")
def ask(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """A page of the browser; see flame_graph.mjs for its steps and what comes back."""
    log = tmp_path_factory.mktemp("flame_graph") / "stderr"
    with asking(HERE / "flame_graph.mjs", packages, log) as ask:
        yield ask


def step(ask: Ask, **what: object) -> dict[str, Any]:
    return ask(json.dumps(what))


def widths(found: dict[str, Any]) -> dict[str, float]:
    """Part of the window that each frame takes, by name; the widest of a name."""
    whole = max(width for _, _, width, _ in found["frames"])
    return {name: width / whole for name, _, width, _ in reversed(found["frames"])}


@pytest.fixture(params=["svg", "html"])
def exported(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    trace, target = tmp_path / "<b>x&.folded", tmp_path / f"out.{request.param}"
    trace.write_text(STACKS)
    assert main(["export", str(trace), "-f", request.param, "-o", str(target)]) == 0
    return target


def test_it_zooms_searches_and_loads_nothing(ask: Ask, exported: Path) -> None:
    found = step(ask, open=str(exported), width=1000)
    assert (found["requests"], found["problems"]) == ([exported.as_uri()], [])
    assert widths(found) == pytest.approx(
        {
            "all": 1,
            "main": 1,
            "train": 0.8,
            "forward": 0.5,
            "gemm": 0.4,
            "softmax": 0.1,
            "backward": 0.3,
            "load": 0.2,
            EVIL: 0.2,
        },
        abs=0.002,
    )
    zoomed = step(ask, click="train")
    assert EVIL not in widths(zoomed)
    assert widths(zoomed)["forward"] == pytest.approx(0.625, abs=0.002)
    assert [text for name, *_, text in zoomed["frames"] if name == "backward"] == ["backward"]

    searched = step(ask, keys=["/"], type="^gemm$")
    assert searched["hits"] == ["gemm", "gemm"]
    assert searched["told"] == "2 frames match: 87.5 % of train"
    wrong = step(ask, type="(")
    assert wrong["invalid"] and wrong["hits"] == []
    cleared = step(ask, keys=["Escape"])
    assert not cleared["invalid"] and cleared["told"].startswith("click: zoom")

    above = step(ask, keys=["Escape"])
    assert widths(above) == pytest.approx(widths(found), abs=0.002)
    step(ask, click="forward")
    assert step(ask, click="gemm")["problems"] == []
    assert widths(step(ask, keys=["Backspace"]))["softmax"] == pytest.approx(0.2, abs=0.002)


def test_a_match_within_a_match_counts_once(ask: Ask, exported: Path) -> None:
    step(ask, open=str(exported), width=1000)
    found = step(ask, keys=["/"], type="main|gemm")
    assert found["told"] == "3 frames match: 100.0 % of all"


def test_names_are_cut_to_their_room_when_the_window_changes(ask: Ask, exported: Path) -> None:
    def texts(found: dict[str, Any]) -> dict[str, str]:
        return {name: text for name, *_, text in found["frames"]}

    wide = texts(step(ask, open=str(exported), width=1600))
    narrow = texts(step(ask, width=300))
    assert wide["softmax"] == "softmax"
    assert narrow["softmax"] != "softmax" and narrow["train"] == "train"


def test_a_real_tree_is_drawn_as_it_is(ask: Ask, tmp_path: Path) -> None:
    from tests.support.paths import SAMPLES

    path = tmp_path / "x.svg"
    trace = SAMPLES / "decode_small.sqlite"
    options = ["--kernel-names", "base", "--no-fold-numbers"]
    assert main(["export", str(trace), "-f", "svg", *options, "-o", str(path)]) == 0
    found = step(ask, open=str(path), width=1400)
    tree = project(load(trace))
    boxes = [(name, left, width) for name, left, width, _ in found["frames"]]
    left, whole = boxes[0][1:]
    drawn = {(tree.name(n), round(1e4 * tree.x[n] / tree.total[0])) for n in range(len(tree))}
    assert {(name, round(1e4 * (at - left) / whole)) for name, at, _ in boxes} <= {
        (name, place + more) for name, place in drawn for more in (-1, 0, 1)
    }
