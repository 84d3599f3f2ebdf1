"""The documentation is complete and true: tables, links, command lines, options."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs import generate
from docs.man_pages import man_pages
from flame.cli.attach import check
from flame.cli.parser import command_parsers, complete, parse
from flame.cli.record import plan_of
from flame.core.model.metrics import ALL_METRICS
from flame.core.projection.levels import LEVELS
from flame.options.selection import load_options_of, selection_of
from tests import textual_versions
from tests.support.paths import ROOT

MANUAL = sorted((ROOT / "docs").glob("*.md"))
PAGES = [
    path
    for path in (
        *(ROOT / "README.md", ROOT / "CONTRIBUTING.md", *MANUAL),
        *(ROOT / "inject" / "README.md", ROOT / "samples" / "README.md"),
    )
    if path.exists()
]
COMMANDS = command_parsers()


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


def fenced(text: str) -> list[str]:
    """The lines of all fenced blocks, those that end in a backslash joined with the next."""
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return "".join(blocks).replace("\\\n", " ").splitlines()


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def command_lines() -> Iterator[tuple[str, str]]:
    for path in PAGES:
        for line in fenced(text_of(path)):
            if line.removeprefix("$ ").startswith("flame "):
                yield name_of(path), line.removeprefix("$ ").strip()


def anchors(text: str) -> set[str]:
    """The anchors of the headings of a page, as forges make them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+)$", without_blocks(text), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        again = sum(one == words or one.startswith(f"{words}-") for one in found)
        found.add(f"{words}-{again}" if words in found else words)
    return found


# Generated parts


@pytest.mark.parametrize("path", MANUAL, ids=name_of)
def test_the_generated_parts_are_current(path: Path) -> None:
    text = text_of(path)
    assert generate.generated(text, generate.parts()) == text, "run docs/generate.py"


def test_every_generated_part_has_a_place() -> None:
    used = [name for path in MANUAL for name in generate.names_in(text_of(path))]
    assert sorted(used) == sorted(generate.parts())


def test_every_mark_is_one_of_a_pair() -> None:
    for path in MANUAL:
        text = text_of(path)
        assert text.count(": begin -->") == text.count(": end -->") == len(generate.names_in(text))


def test_the_script_names_pages_that_are_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "DOCS", tmp_path)
    page = tmp_path / "keys.md"
    page.write_text("# Keys\n\n<!-- keys: begin -->\nold\n<!-- keys: end -->\nrest\n")
    monkeypatch.setattr(generate, "_layers", dict)
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "_packages", lambda package: iter(()))
    monkeypatch.setattr(generate, "man_pages", lambda: {"flame.1": "a page"})
    assert generate.main(["--check"]) == 1
    told = capsys.readouterr().out
    assert told == "keys.md: is out of date\nman/flame.1: is out of date\n"
    assert "old" in page.read_text()
    assert generate.main([]) == 0
    assert page.read_text().startswith("# Keys\n\n<!-- keys: begin -->\n| key | |\n")
    assert page.read_text().endswith("<!-- keys: end -->\nrest\n")
    assert (tmp_path / "man" / "flame.1").read_text() == "a page"
    assert generate.main(["--check"]) == 0


def test_the_man_pages_are_current() -> None:
    pages = man_pages()
    assert {path.name for path in (generate.DOCS / "man").iterdir()} == set(pages)
    for name, text in pages.items():
        assert (generate.DOCS / "man" / name).read_text("utf-8") == text, "run make man"


@pytest.mark.skipif(not shutil.which("man"), reason="no man")
def test_man_has_nothing_to_say_of_the_pages() -> None:
    for name in man_pages():
        command = ["man", "--warnings", "-l", str(generate.DOCS / "man" / name)]
        done = subprocess.run(command, capture_output=True, check=True)
        assert (name, done.stderr) == (name, b"")
        assert b"EXAMPLES" in re.sub(rb".\x08", b"", done.stdout)


def test_every_package_says_what_belongs_there() -> None:
    for line in generate.package_list().splitlines()[2:]:
        assert re.fullmatch(r"\| `flame/[\w/]+/` \| .+ \|", line), line


# Links and paths


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^()\s]+)\)", without_blocks(text_of(path))):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        there = path.parent / file if file else path
        assert there.exists(), target
        assert not anchor or anchor in anchors(text_of(there)), target


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_file_that_is_named_exists(path: Path) -> None:
    folders = "flame|inject|benchmarks|samples|docs|tests"
    for named in re.findall(rf"(?<![\w/])(?:{folders})/[\w./-]*\w", text_of(path)):
        assert (ROOT / named).exists() or (path.parent / named).exists(), named


def test_the_manual_has_an_index_of_all_pages() -> None:
    index = text_of(ROOT / "docs" / "README.md")
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", index))
    assert linked == {path.name for path in MANUAL} - {"README.md"}


@pytest.mark.parametrize("path", MANUAL, ids=name_of)
def test_every_page_says_first_what_it_is_for(path: Path) -> None:
    assert re.match(r"# [^\n]+\n\nThis [^\n]+[.:]\n", text_of(path))


# Commands and options


@pytest.mark.parametrize(("page", "line"), command_lines())
def test_every_command_line_is_understood(page: str, line: str) -> None:
    words = shlex.split(line.partition("|")[0], comments=True)
    args = parse(complete(words[1:]))
    if args.command == "record":
        plan_of(args)
    if args.command in ("view", "export", "attach"):
        load_options_of(args)
        selection_of(args)
    if args.command == "attach":
        check(args)


def test_there_are_command_lines_of_every_command() -> None:
    assert {line.split()[1] for _, line in command_lines()} >= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_page_with_its_options(command: str) -> None:
    pages = [
        path
        for path in MANUAL
        if f"flame {command}" in text_of(path)
        and f"options of {command}" in generate.names_in(text_of(path))
    ]
    assert len(pages) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_documented(command: str) -> None:
    manual = "\n".join(map(text_of, MANUAL))
    for action in COMMANDS[command]._actions:
        for option in set(action.option_strings) - {"-h", "--help"}:
            assert re.search(rf"`{option}[ `]", manual), option


def test_every_level_and_metric_is_documented() -> None:
    page = text_of(ROOT / "docs" / "selection.md")
    for metric in ALL_METRICS:
        assert f"| `{metric.key}` | {metric.title} |" in page
    first = re.findall(r"^\| (`.+?) \|", page, re.MULTILINE)
    named = {name for cell in first for name in re.findall(r"`(\w+)`", cell)}
    assert named >= set(LEVELS)


def glossary() -> dict[str, str]:
    """What the glossary says, by the terms of each row."""
    page = text_of(ROOT / "docs" / "architecture.md").partition("\n## Glossary\n")[2]
    rows = re.findall(r"^\| (\*\*.+?) \| (.+) \|$", page, re.MULTILINE)
    found: dict[str, str] = {}
    for terms, definition in rows:
        assert terms not in found, terms
        found[terms] = definition
    return found


def test_the_glossary_lists_every_metric() -> None:
    listed = glossary()["**metric**"]
    of_memory = listed.partition("of memory ")[2]
    for metric in ALL_METRICS:
        where = of_memory if metric.table == "memory" else listed
        assert re.search(rf"\b{re.escape(metric.title)}[,;]", where), metric.title


@pytest.mark.parametrize(
    ("term", "others"),
    [
        ("group", ["of activities", "of ranks"]),
        ("snapshot", ["of a growing recording", "memory snapshot"]),
        ("window", ["of a growing recording", "time window", "of a GPU"]),
        ("peak", ["of a GPU", "of memory"]),
        ("bound", ["of a kernel", "of a finding"]),
    ],
)
def test_the_glossary_tells_every_meaning_of_a_word(term: str, others: list[str]) -> None:
    meaning = glossary()[f"**{term}**"].lower()
    assert [one for one in others if one.lower() not in meaning] == []


def test_nobody_is_told_to_install_a_name_that_is_not_published() -> None:
    papers = {name_of(path): text_of(path) for path in PAGES if path.name != "releasing.md"}
    code = {name_of(path): text_of(path) for path in sorted((ROOT / "flame").rglob("*.py"))}
    remedy = re.compile(r"\binstall\b[^\n]*flame-view\b", re.IGNORECASE)
    told = {name: remedy.findall(text) for name, text in (papers | code).items()}
    assert {name: lines for name, lines in told.items() if lines} == {}


def test_the_versions_of_textual_are_those_that_are_installed() -> None:
    first, last = textual_versions.allowed()
    assert f"Textual, which draws the app, {first} to {last} and no other" in text_of(
        ROOT / "docs" / "install.md"
    )


# Size


@pytest.mark.parametrize(("page", "most"), [("README.md", 150), ("CONTRIBUTING.md", 80)])
def test_the_first_pages_stay_short(page: str, most: int) -> None:
    assert len(text_of(ROOT / page).splitlines()) <= most
