"""Holds the folders of the injection library to their README: sizes, and who includes whom."""

from __future__ import annotations

import re
from collections import Counter
from graphlib import TopologicalSorter

import pytest

from inject.build import HERE

MOST_FILES = 18
MOST_LINES = 400

ROW = re.compile(r"^\| `(?P<place>[^`]+)` \| [^|]+ \| (?P<allowed>[^|]*)\|$", re.MULTILINE)
NAME = re.compile(r"`([^`]+)`")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)

TEXTS = {
    path.relative_to(HERE).as_posix(): path.read_text("utf-8")
    for path in sorted(HERE.rglob("*"))
    if path.suffix in (".cpp", ".h")
}
INCLUDES = {file: INCLUDE.findall(text) for file, text in TEXTS.items()}
ALLOWED = {
    row["place"]: NAME.findall(row["allowed"])
    for row in ROW.finditer((HERE / "README.md").read_text("utf-8"))
}


def place_of(file: str) -> str:
    """The row of the README that ``file`` belongs to: its own, else that of its folder."""
    return file if file in ALLOWED else file.rpartition("/")[0] + "/"


def test_a_folder_has_few_files() -> None:
    sizes = Counter(file.rpartition("/")[0] for file in TEXTS)
    assert {folder: size for folder, size in sizes.items() if size > MOST_FILES} == {}


def test_a_file_has_few_lines() -> None:
    sizes = {file: len(text.splitlines()) for file, text in TEXTS.items()}
    assert {file: size for file, size in sizes.items() if size > MOST_LINES} == {}


def test_the_readme_has_a_row_for_each_folder_and_no_other() -> None:
    assert {place_of(file) for file in TEXTS} == set(ALLOWED)


@pytest.mark.parametrize("place", ALLOWED)
def test_only_what_is_further_up_may_be_included(place: str) -> None:
    above = list(ALLOWED)[: list(ALLOWED).index(place)]
    assert set(ALLOWED[place]) <= set(above)


@pytest.mark.parametrize("place", ALLOWED)
def test_a_folder_includes_what_the_readme_allows(place: str) -> None:
    included = {
        (file, header)
        for file, headers in INCLUDES.items()
        for header in headers
        if place_of(file) == place
    }
    assert {header for _, header in included} <= set(TEXTS)
    allowed = {place, *ALLOWED[place]}
    assert {pair for pair in included if place_of(pair[1]) not in allowed} == set()


def test_no_file_includes_itself_by_way_of_others() -> None:
    assert sum(map(len, INCLUDES.values())) > len(TEXTS)
    TopologicalSorter(INCLUDES).prepare()  # a CycleError names the circle
