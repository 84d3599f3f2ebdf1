"""The layout of the package holds: few modules per folder, short files, a charter per package.

That data flows one way is held by the import contracts in ``pyproject.toml``; circles between
single modules, which packages do not show, are looked for here.
"""

from __future__ import annotations

import ast
import gc
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest

from tests.support.paths import ROOT

FLAME = ROOT / "flame"
MOST_MODULES = 18
MOST_LINES = 400
MOST_LEVELS = 3

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(FLAME.rglob("*.py"))
}
PACKAGES = sorted(path.parent for path in MODULES.values() if path.name == "__init__.py")


@cache
def trees() -> dict[str, ast.Module]:
    """The modules of flame, parsed: not while tests are collected, which every worker does."""
    gc.disable()  # which takes twice as long as the parsing
    try:
        return {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}
    finally:
        gc.enable()


def imported_by(name: str) -> Iterator[str]:
    """Modules of flame that a module imports, inside of functions and for types, too."""
    for node in ast.walk(trees()[name]):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: imports are absolute"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@cache
def imports() -> dict[str, set[str]]:
    """The modules of flame that each of them imports."""
    return {
        name: {module for module in imported_by(name) if module in MODULES and module != name}
        for name in MODULES
    }


def reached_from(name: str) -> set[str]:
    """All modules that ``name`` imports, also by way of others."""
    reached: set[str] = set()
    ahead = [name]
    while ahead:
        new = imports()[ahead.pop()] - reached
        reached |= new
        ahead += new
    return reached


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert [name for name in MODULES if name in reached_from(name)] == []


def test_what_the_app_shows_is_kept_apart_from_widgets() -> None:
    session = [path for name, path in MODULES.items() if name.startswith("flame.tui.session.")]
    assert session
    for path in session:
        assert not re.search(
            r"^\s*(from|import) textual\.widgets?\b", path.read_text("utf-8"), re.M
        )


def test_what_one_package_alone_may_import_is_forbidden_to_all_others() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    exclusive = {one["name"]: one for one in contracts if one["name"].startswith("only ")}
    assert {tuple(one["source_modules"]) for one in exclusive.values()} == {("flame",)}
    excepted = {
        name: {line.partition(" -> ")[0] for line in one["ignore_imports"]}
        for name, one in exclusive.items()
    }
    assert excepted == {
        "only tui imports textual": {"flame.tui.**"},
        "only engines imports dask": {"flame.engines.**"},
        "only fetching imports what fetches": {"flame.core.fetching.**"},
    }


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_has_few_modules_and_a_charter(package: Path) -> None:
    assert len([*package.glob("*.py")]) <= MOST_MODULES
    assert len(package.relative_to(FLAME).parts) <= MOST_LEVELS
    charter = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    first = charter.partition("\n")[0]
    assert first.endswith(".") and len(first.split()) >= 4, f"{package} has no charter"


def name_of(package: Path) -> str:
    return ".".join(package.relative_to(ROOT).parts)


PACKAGE_NAMES = {name_of(package) for package in PACKAGES}


def seen_from(package: str, module: str) -> str:
    """The outermost part of ``module`` that ``package`` is not in, such as ``flame.core``."""
    parts = accumulate(module.split("."), "{}.{}".format)
    return next((part for part in parts if not f"{package}.".startswith(f"{part}.")), module)


def packages_imported_by(package: str) -> set[str]:
    """Names of the packages beside ``package``, or beside what it is in, that it imports.

    Single modules that stand there are not counted: the contracts tell who may import these.
    """
    inside = {name for name in MODULES if f"{name}.".startswith(f"{package}.")}
    outside = set().union(*(imports()[name] for name in inside)) - inside
    seen = {seen_from(package, module) for module in outside}
    return {name.rpartition(".")[2] for name in seen & PACKAGE_NAMES}


@pytest.mark.parametrize("package", PACKAGES[1:], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_charter_lists_the_packages_that_are_imported(package: Path) -> None:
    charter = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    listed = re.search(r"May import: ([\w, ]+)\.$", " ".join(charter.split()))
    assert listed, "the last sentence is to be: May import: NAME, NAME."
    names = [] if listed[1] == "no other package" else listed[1].split(", ")
    assert sorted(names) == sorted(packages_imported_by(name_of(package)))


def test_every_package_of_flame_has_a_folder_of_tests() -> None:
    names = {package.name for package in PACKAGES if package.parent == FLAME}
    assert {name for name in names if not [*(ROOT / "tests" / name).rglob("test_*.py")]} == set()


def test_files_are_short() -> None:
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in MODULES.items()}
    assert {name: number for name, number in lines.items() if number > MOST_LINES} == {}


def test_every_module_says_what_it_is_for() -> None:
    assert [name for name, tree in trees().items() if not ast.get_docstring(tree)] == []


def public_classes(tree: ast.Module) -> Iterator[str]:
    """Names of the classes of a module that stand in no other class or function."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def test_no_class_name_has_two_meanings() -> None:
    modules = defaultdict(list)
    for name, tree in trees().items():
        for public in public_classes(tree):
            modules[public].append(name)
    assert {public: names for public, names in modules.items() if len(names) > 1} == {}


PRONOUNS = {"found", "known", "mine", "of", "one", "said", "told"}
"""Names of parameters that do not say of what: the type of each has a noun."""


def public_functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions of a module and methods of its classes that others call, with their names."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            methods = (part for part in node.body if isinstance(part, ast.FunctionDef))
            yield from ((f"{node.name}.{method.name}", method) for method in methods)
        elif isinstance(node, ast.FunctionDef):
            yield node.name, node


def test_parameters_of_public_functions_are_nouns() -> None:
    pronouns = {
        f"{name}.{function}": wrong
        for name, tree in trees().items()
        for function, node in public_functions(tree)
        if not re.search(r"(^|\.)_[a-z]", function)
        and (
            wrong := PRONOUNS & {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
        )
    }
    assert pronouns == {}


WRITING = re.compile(
    r"(?<![\w.])print\(|\bprint_exc(?:eption)?\(|\bsys\.(?:__)?std(?:out|err)(?:__)?\.(?:buffer|write)\b"
)
WRITERS = {
    "flame.cli.streams": "text",
    "flame.console.terminal": "notes, errors and tracebacks",
    "flame.core.files.atomic": "bytes",
    "flame.cli.main": "the version, where only stderr is open",
    "flame.options.parser": "help",
    "flame.web.server": "the address to open",
    "flame.doctor.probe": "JSON, to the flame that has started it",
}


def test_few_modules_write_to_the_standard_streams() -> None:
    """What they write is escaped there: no other has to remember that a name may steer."""
    found = {name for name, path in MODULES.items() if WRITING.search(path.read_text("utf-8"))}
    assert found == set(WRITERS)


def test_this_python_is_started_isolated_from_the_current_folder() -> None:
    isolated, beside = r'\[sys\.executable, "-[PI]"', r"Path\(sys\.executable\)\.with_name\("
    texts = {name: path.read_text("utf-8") for name, path in MODULES.items()}
    others = {name: re.sub(f"{isolated}|{beside}", "", text) for name, text in texts.items()}
    assert len(re.findall(isolated, texts["flame.core.external"])) == 1
    named = re.compile(r"\bsys\.executable\b|^\s*from sys import .*\bexecutable\b", re.M)
    assert [name for name, text in others.items() if named.search(text)] == []


def test_calls_that_come_later_are_not_lost() -> None:
    """Textual's own may be: see `call_once`."""
    texts = {name: path.read_text("utf-8") for name, path in MODULES.items()}
    named = [name for name, text in texts.items() if ".set_timer(" in text]
    assert named == ["flame.tui.toolkit.background"]
