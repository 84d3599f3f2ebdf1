"""Frames of several trees are joined as one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.columns import Column
from flame.core.compare.common_frames import CommonFrames, join_frames
from flame.core.compare.comparison import compare
from flame.core.compare.sides import Run, Sides
from flame.core.frame import Frame, Kind
from flame.core.loading.many import load
from flame.core.model.frames import SMALLER, FrameTable, PackedFrames
from flame.core.model.tree import StackTree
from flame.core.names.numbers import STAR, are_folded_alike, split_numbers
from flame.core.projection.labels import Naming, common_key
from flame.core.projection.project import project
from flame.core.projection.selection import Selection

_NAMES = st.sampled_from(
    [
        "a",
        "b",
        "leaf",
        "step 1",
        "step 2",
        "step *",
        "1 step",
        "x" * 300,
        "é",
        "aten::add",
        "b.py:3",
    ]
) | st.integers(0, 20).map("layer.{}.mlp".format)
_FILES = st.lists(st.lists(_NAMES, min_size=1, max_size=3), min_size=1, max_size=25)
_REST = Frame(Kind.REST, SMALLER)


def _tree(path: Path, stacks: list[list[str]], form: int) -> StackTree:
    """A tree of these stacks, whose frames are packed, or are so in part, or are not."""
    path.write_text("".join(f"main;{';'.join(names)} 1\n" for names in stacks))
    tree = project(load(path), Selection(naming=Naming(numbers=form in (1, 3))))
    frames = tree.frames.frames
    assert isinstance(frames, PackedFrames)
    if form < 2:
        return tree
    examples: dict[int, tuple[str, ...]] = {
        at: (f"example {at}",) for at in range(1, len(frames), 3)
    }
    if form == 2:
        return replace(tree, frames=FrameTable(frames, examples))
    return replace(tree, frames=FrameTable(tuple(frames), examples), text=tuple(tree.text))


def _shape(text: str) -> str:
    return STAR.join(split_numbers(text).texts)


def _folded(trees: list[StackTree], iterations: list[Column]) -> set[tuple[Kind, str]]:
    found = set()
    for tree, repeated in zip(trees, iterations, strict=True):
        for frame in set(tree.frame.tolist()):
            kind, text = tree.frames[frame].kind, tree.text[frame]
            if STAR in text:
                found.add((kind, text))
            if frame in repeated:
                found.add((kind, _shape(text)))
    return found


def _joined(trees: list[StackTree], iterations: list[Column], others: list[Frame]) -> CommonFrames:
    """Join them in a plain loop."""
    folded = _folded(trees, iterations)

    def called(kind: Kind, text: str) -> str:
        alike = [one for of, one in folded if of == kind and _shape(one) == _shape(text)]
        standing = [one for one in alike if are_folded_alike(text, one)]
        return max(standing, key=lambda one: (one.count(STAR), one), default=text)

    root = trees[-1].frames[0]
    ids, frames, texts = {common_key(root, ""): 0}, [root], [trees[-1].text[0]]
    examples: dict[int, tuple[str, ...]] = {}
    of_tree = [np.full(len(tree.frames), -1, np.int32) for tree in trees]
    for tree, common in zip(trees[::-1], of_tree[::-1], strict=True):
        common[0] = 0
        for frame in sorted({*tree.frame.tolist()} - {0}):
            what = tree.frames[frame]
            name = called(what.kind, tree.text[frame])
            common[frame] = ids.setdefault(common_key(what, name), len(ids))
            if common[frame] == len(frames):
                if frame in tree.frames.examples:
                    examples[len(frames)] = tree.frames.examples[frame]
                frames.append(what)
                texts.append(name)
    of_others = []
    for other in others:
        of_others.append(ids.setdefault(common_key(other, other.name), len(ids)))
        if of_others[-1] == len(frames):
            frames.append(other)
            texts.append(other.name)
    table = FrameTable(tuple(frames), examples)
    return CommonFrames(table, tuple(texts), tuple(of_tree), np.array(of_others, np.int32))


@given(st.lists(st.tuples(_FILES, st.integers(0, 3)), min_size=1, max_size=3), st.data())
def test_frames_are_joined_as_one_by_one(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[tuple[list[list[str]], int]],
    data: st.DataObject,
) -> None:
    path = tmp_path_factory.getbasetemp() / "a.folded"
    trees = [_tree(path, stacks, form) for stacks, form in files]
    iterations = [
        np.array(data.draw(st.lists(st.integers(1, len(tree.frames)), max_size=2)), np.int32)
        for tree in trees
    ]
    others = data.draw(st.sampled_from([[], [_REST], [_REST, Frame(Kind.FRAME, "leaf")]]))
    found, expected = join_frames(trees, iterations, others), _joined(trees, iterations, others)
    assert tuple(found.table.frames) == expected.table.frames
    assert found.table.examples == expected.table.examples
    assert tuple(found.text) == expected.text
    for one, other in zip(found.of_tree, expected.of_tree, strict=True):
        assert one.tolist() == other.tolist()
    assert found.of_others.tolist() == expected.of_others.tolist()


def test_names_that_are_nothing_else_stay_packed(tmp_path: Path) -> None:
    trees = [_tree(tmp_path / "a.folded", [["a", "b"]], 0), _tree(tmp_path / "b", [["b", "c"]], 0)]
    found = join_frames(trees, [np.zeros(0, np.int32)] * 2)
    assert isinstance(found.table.frames, PackedFrames)
    assert [*found.table.frames.others] == [0]
    assert [*found.text] == ["all", "main", "b", "c", "a"]


@pytest.mark.deep
def test_files_of_300_000_leaves_align(tmp_path: Path) -> None:
    size, runs = 300_000, []
    for name, first in (("a", 0), ("b", 100_000)):
        lines = (f"m;g{at % 300};leaf_{at} {at + 1}\n" for at in range(first, first + size))
        (tmp_path / f"{name}.folded").write_text("".join(lines))
        runs.append(Run(load(tmp_path / f"{name}.folded"), name))
    found = compare(Sides((runs[0],), (runs[1],)))
    tree = found.union.tree
    leaves = np.flatnonzero(tree.end == np.arange(len(tree)) + 1)
    values = {tree.text[tree.frame[at]]: found.union.own[:, at].tolist() for at in leaves.tolist()}
    assert len(leaves) == len(values) == 400_000 and len(tree) == 400_302
    for at in range(400_000):
        assert values[f"leaf_{at}"] == [(at + 1) * (at < size), (at + 1) * (at >= 100_000)]
