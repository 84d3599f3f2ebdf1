"""Opening source lines: the right file, line and editor, and a note wherever that fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from flame.core.columns import I4, I8
from flame.core.model.frames import Frame, FrameTable, Kind
from flame.core.model.metrics import METRICS
from flame.core.model.tree import StackTree
from flame.tui.toolkit.editor import SourcePlace, arguments, open_in_editor, place_of
from tests.tui.dialog_stage import Player, stage


def chain(*frames: Frame) -> StackTree:
    """``frames`` below the root, each below the one before."""
    known = (Frame(Kind.ROOT, "all"), *frames)
    size = len(known)
    order: I4 = np.arange(size, dtype=np.int32)
    own: I8 = np.zeros(size, np.int64)
    own[-1] = 1
    table = FrameTable(known, {})
    text = tuple(frame.name for frame in known)
    end = np.full(size, size, np.int32)
    return StackTree(table, text, METRICS[0], ("python",), order - 1, order, order, end, own, own)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "it's; $(a) file.py"
    path.touch()
    return path


@pytest.fixture
def tree(source: Path) -> StackTree:
    """A Python frame with a source line, and a kernel below it without."""
    return chain(Frame(Kind.PYTHON, "train", str(source), 42), Frame(Kind.KERNEL, "gemm"))


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An editor called ``vi`` that writes its arguments to ``vi.args``; the only one there is."""
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bin").mkdir()
    path = tmp_path / "bin" / "vi"
    path.write_text('#!/bin/sh\nfor word; do echo "$word"; done > "$0.args"\n')
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent))
    return path


def told(editor: Path) -> list[str]:
    """What the editor was told."""
    return Path(f"{editor}.args").read_text().splitlines()


@contextmanager
def _suspended() -> Iterator[None]:
    yield


async def opened(user: Player, tree: StackTree, node: int, editor: str = "") -> str:
    """The note of opening ``node`` in an app that can make way for an editor."""
    user.app.suspend = _suspended  # type: ignore[method-assign]
    return open_in_editor(user.app, tree, node, editor)


async def test_the_editor_is_told_file_and_line(
    tree: StackTree, source: Path, editor: Path
) -> None:
    async with stage() as user:
        assert await opened(user, tree, 1) == "opened it's; $(a) file.py:42"
        assert told(editor) == ["+42", str(source)]


async def test_the_closest_frame_above_stands_in(tree: StackTree, editor: Path) -> None:
    async with stage() as user:
        note = await opened(user, tree, 2)
        assert note.endswith("of train, the closest frame above with a source")
        assert told(editor)[0] == "+42"


@pytest.mark.parametrize("variable", ["VISUAL", "EDITOR"])
async def test_the_environment_names_the_editor(
    tree: StackTree, editor: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    mine = editor.rename(editor.with_name("code"))
    monkeypatch.setenv("EDITOR", "false")
    monkeypatch.setenv(variable, "code --wait '-r a'")
    async with stage() as user:
        assert (await opened(user, tree, 1)).startswith("opened")
        assert told(mine)[:3] == ["--wait", "-r a", "-g"]


async def test_the_configuration_comes_first(
    tree: StackTree, editor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "false")
    async with stage() as user:
        assert (await opened(user, tree, 1, "vi -R")).startswith("opened")
        assert told(editor)[:2] == ["-R", "+42"]


async def test_nano_is_the_last_resort(tree: StackTree, editor: Path) -> None:
    nano = editor.rename(editor.with_name("nano"))
    async with stage() as user:
        await opened(user, tree, 1)
        assert told(nano)[0] == "+42"


@pytest.mark.parametrize(
    ("program", "line", "words"),
    [
        ("/usr/bin/nvim", 7, ["+7", "f.py"]),
        ("emacsclient", 7, ["+7", "f.py"]),
        ("kak", 7, ["+7", "f.py"]),
        ("cursor", 7, ["-g", "f.py:7"]),
        ("subl", 7, ["f.py:7"]),
        ("hx", 7, ["f.py:7"]),
        ("micro", 7, ["f.py:7"]),
        ("unheard-of", 7, ["f.py"]),
        ("vim", 0, ["f.py"]),
    ],
)
def test_every_editor_is_told_the_line_its_own_way(
    program: str, line: int, words: list[str]
) -> None:
    assert arguments(program, "f.py", line) == words


def test_the_frame_itself_comes_before_those_above_it() -> None:
    tree = chain(Frame(Kind.PYTHON, "a", "a.py", 1), Frame(Kind.PYTHON, "b", "b.py", 2))
    assert place_of(tree, 2) == SourcePlace("b.py", 2, 2)
    assert place_of(tree, 1) == SourcePlace("a.py", 1, 1)
    assert place_of(tree, 0) is None


# What can go wrong


async def test_no_source_is_recorded(editor: Path) -> None:
    async with stage() as user:
        note = await opened(user, chain(Frame(Kind.KERNEL, "gemm")), 1)
        assert note == "no source line is recorded for this frame or any above it"


@pytest.mark.parametrize(
    "file", ["/home/elsewhere/train.py", "a\0b", "x" * 5_000, "\udcff.py", "\x1b[2J.py", "/etc"]
)
async def test_the_file_is_not_here(editor: Path, file: str) -> None:
    async with stage() as user:
        note = await opened(user, chain(Frame(Kind.PYTHON, "f", file, 1)), 1)
        assert note.startswith("not on this machine, only where the trace was made: ")
        assert note.isprintable() and len(note) < 130


async def test_a_file_that_is_not_here_is_called_as_it_was_recorded(editor: Path) -> None:
    async with stage() as user:
        note = await opened(user, chain(Frame(Kind.PYTHON, "f", "vllm/worker.py", 1)), 1)
        assert note.endswith("was made: vllm/worker.py")


async def test_an_option_is_no_file(
    editor: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-c quit").touch()
    async with stage() as user:
        await opened(user, chain(Frame(Kind.PYTHON, "f", "-c quit")), 1)
        assert told(editor) == [str(tmp_path / "-c quit")]


@pytest.mark.parametrize(
    ("chosen", "note"),
    [
        ("no-such-editor -w", "the editor no-such-editor is not on PATH"),
        ("/dev/null", "the editor null cannot be started: Permission denied"),
        ("'unclosed", "the editor ''unclosed' cannot be understood: No closing quotation"),
        (" ", "no editor found: set $EDITOR"),
        ("vi", "the editor vi ended with code 3"),
    ],
)
async def test_the_editor_fails(tree: StackTree, editor: Path, chosen: str, note: str) -> None:
    editor.write_text("#!/bin/sh\nexit 3\n")
    async with stage() as user:
        assert (await opened(user, tree, 1, chosen)).startswith(note)


async def test_there_is_no_editor(tree: StackTree, editor: Path) -> None:
    editor.unlink()
    async with stage() as user:
        assert await opened(user, tree, 1) == "no editor found: set $EDITOR"


async def test_without_a_terminal_there_is_no_editor(tree: StackTree, editor: Path) -> None:
    async with stage() as user:
        note = open_in_editor(user.app, tree, 1)
        assert note == "an editor needs a terminal: not possible here"
        assert not Path(f"{editor}.args").exists()


@pytest.mark.parametrize("name", ["-c:!id", "+!id", "--cmd=id", "ssh:host:file"])
async def test_a_name_that_a_trace_has_made_up_is_a_file_and_no_option(
    editor: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).touch()
    async with stage() as user:
        assert (await opened(user, chain(Frame(Kind.PYTHON, "f", name, 7)), 1)).startswith("opened")
        assert told(editor) == ["+7", str(tmp_path / name)]


@pytest.mark.parametrize("name", ["pipe", "folder", "scp://host/file", "/dev/tty", "x\0y"])
async def test_a_name_that_is_no_file_here_is_not_opened(
    editor: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("folder").mkdir()
    async with stage() as user:
        note = await opened(user, chain(Frame(Kind.PYTHON, "f", name, 7)), 1)
    assert note.startswith("not on this machine") and not Path(f"{editor}.args").exists()
