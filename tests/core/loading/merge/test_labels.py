"""Names of several traces: their labels, their title and their stem."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.loading.inputs import Inputs
from flame.core.loading.source_labels import label_paths, label_sources
from flame.core.model.meta import Meta


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (["run/rank0.json.gz", "run/rank1.json.gz"], ["rank0", "rank1"]),
        (["a/trace.json", "b/trace.json"], ["a", "b"]),
        (["a/x/t.json", "b/x/t.json"], ["a", "b"]),
        (["x/a.json", "y/b.json"], ["a", "b"]),
        (["x/a.json", "y/a.json", "y/b.json"], ["x/a", "y/a", "y/b"]),
        (["run.json", "run.sqlite"], ["run.json", "run.sqlite"]),
        ([".json", "a.json"], [".json", "a.json"]),
        (["a.json", "a.json"], ["a", "a"]),
    ],
)
def test_labels_are_what_tells_paths_apart(paths: list[str], labels: list[str]) -> None:
    assert list(label_paths(paths)) == labels


def test_ranks_are_labels_where_all_are_known_and_differ() -> None:
    def labels(*ranks: int | None) -> tuple[str, ...]:
        return label_sources([Meta(path=f"{n}.json", rank=rank) for n, rank in enumerate(ranks)])

    assert labels(3, 1) == ("rank 3", "rank 1")
    assert labels(0, 0) == labels(0, None) == ("0", "1")


def test_several_traces_have_a_title_and_a_stem() -> None:
    def inputs(*names: str) -> Inputs:
        return Inputs(tuple(map(Path, names)))

    assert (inputs("x/a.json").title, inputs("x/a.json").stem) == ("a.json", "a")
    assert inputs("x/a.pt.trace.json.gz").stem == "a.pt.trace"

    assert inputs("a0.json", "a1.json").title == "2 traces: a0, a1"
    four = inputs(*(f"rank{number}.json.gz" for number in range(4)))
    assert (four.title, four.stem) == ("4 traces: rank0…rank3", "rank0-and-3-more")
