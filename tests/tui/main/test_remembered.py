"""What one start of the app remembers for the next: who wins, what is shown, how it is undone."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flame.cli.main import main
from flame.console.background_colour import TerminalBackground
from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.filters import HideFramework, ShowStacks
from flame.core.projection.selection import Selection
from flame.options import preferences
from flame.options.config import DEFAULTS, Config
from flame.options.preferences import Memory, Preferences, ShownLevels
from flame.tui.session.recall import Remembering, kind_of, with_preferences
from flame.tui.shell.start import Start
from tests.support.paths import SAMPLES
from tests.support.waiting import PATIENCE
from tests.tui.conftest import USUAL, User, open_app

TORCH = SAMPLES / "torch_small.pt.trace.json.gz"
NSYS = SAMPLES / "decode_small.sqlite"
KERNELS = ShownLevels(("kernel",))
MODULES = ShownLevels(("module", "kernel"), True)

REMEMBERED: dict[str, Any] = {
    "theme": "flame-light",
    "details": False,
    "kernel_names": "base",
    "colours": "category",
    "hide_framework": True,
    "fold_numbers": False,
}
ALL = Preferences(**REMEMBERED, levels={"kineto": KERNELS})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "flame" / "preferences.json"


@pytest.fixture(autouse=True)
def _writing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is; an app that is left waits for a second."""
    monkeypatch.setattr(preferences, "_TIMEOUT", PATIENCE)


def started(path: Path) -> Start:
    memory = Memory(path)
    return Start(memory, memory.preferences)


def keep(path: Path, **settings: Any) -> None:
    """Remember ``settings`` as an earlier session would have."""
    memory = Memory(path)
    for kind, levels in settings.pop("levels", {}).items():
        memory.remember_levels(kind, levels)
    memory.remember(**settings)
    memory.settle()


def kept(user: User, path: Path) -> Preferences:
    """What the next start will read."""
    user.app.start.memory.settle()
    return Memory(path).preferences


# Who wins: the command line and a saved place, the configuration, what is remembered, the usual

Shown = tuple[Config, Selection]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Shown]:
    """What the app would show on a terminal: by a configuration, what is remembered and options."""

    def show(config: str, remembered: Preferences, *options: str) -> Shown:
        seen: list[Shown] = []

        def run(
            inputs: object,
            read: object,
            select: Callable[[], Selection],
            state: object,
            config: Config,
            start: Start,
        ) -> int:
            profile = load(TORCH)
            recalled = with_preferences(start.recalled, config.framework, select(), profile)
            seen.append((start.look(config), recalled))
            return 0

        file = tmp_path / "config.toml"
        file.write_text(config)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        fields = {name: getattr(remembered, name) for name in REMEMBERED}
        keep(tmp_path / "state" / "flame" / "preferences.json", levels=remembered.levels, **fields)
        monkeypatch.setenv("FLAME_CONFIG", str(file))
        monkeypatch.setattr("flame.tui.main.app.run", run)
        monkeypatch.setattr("flame.cli.view.is_on_terminal", lambda: True)
        assert main(["view", str(TORCH), *options]) == 0
        return seen[0]

    return show


def theme(shown: Shown) -> object:
    return shown[0].theme


def details(shown: Shown) -> object:
    return shown[0].details


def kernel_names(shown: Shown) -> object:
    return shown[1].naming.kernel_names


def colours(shown: Shown) -> object:
    return shown[1].colours


def hides_framework(shown: Shown) -> object:
    return [one.pattern for one in shown[1].where if isinstance(one, HideFramework)]


def folds_numbers(shown: Shown) -> object:
    return shown[1].naming.numbers


def levels(shown: Shown) -> object:
    return shown[1].levels


USUAL_FRAMEWORK = [HideFramework().pattern]
NAMES = 'kernel_names = "demangled"'
OWN_FRAMES = 'framework = ["^x"]'
PLACE = ("--state", "{}")


@pytest.mark.parametrize(
    ("setting", "config", "remembered", "options", "expected"),
    [
        (theme, "", Preferences(), (), "auto"),
        (theme, "", ALL, (), "flame-light"),
        (theme, "", ALL, PLACE, "flame-light"),
        (theme, 'theme = "flame-contrast"', ALL, (), "flame-contrast"),
        (theme, 'theme = "auto"', ALL, (), "auto"),
        (theme, "remember = false", ALL, (), "auto"),
        (details, "", Preferences(), (), True),
        (details, "", ALL, (), False),
        (details, "details = true", ALL, (), True),
        (details, "details = false", Preferences(), (), False),
        (kernel_names, "", Preferences(), (), "short"),
        (kernel_names, "", ALL, (), "base"),
        (kernel_names, NAMES, ALL, (), "demangled"),
        (kernel_names, NAMES, ALL, ("--kernel-names", "mangled"), "mangled"),
        (kernel_names, "", ALL, ("--kernel-names", "short"), "short"),
        (kernel_names, "", ALL, PLACE, "short"),
        (kernel_names, NAMES, ALL, PLACE, "demangled"),
        (kernel_names, "remember = false", ALL, (), "short"),
        (colours, "", Preferences(), (), "level"),
        (colours, "", ALL, (), "category"),
        (colours, "", ALL, ("--colours", "level"), "level"),
        (colours, "", ALL, PLACE, "level"),
        (hides_framework, "", Preferences(), (), []),
        (hides_framework, "", ALL, (), USUAL_FRAMEWORK),
        (hides_framework, OWN_FRAMES, ALL, (), ["^x"]),
        (hides_framework, "framework = []", ALL, (), []),
        (hides_framework, OWN_FRAMES, ALL, ("--framework", "y$"), ["y$"]),
        (hides_framework, "", ALL, PLACE, []),
        (folds_numbers, "", Preferences(), (), True),
        (folds_numbers, "", ALL, (), False),
        (folds_numbers, "", ALL, ("--fold-numbers",), True),
        (folds_numbers, "", ALL, PLACE, True),
        (levels, "", Preferences(), (), None),
        (levels, "", ALL, (), ("kernel",)),
        (levels, "", ALL, ("--arrange", "unified"), None),
        (levels, "", ALL, ("--levels", "nvtx,kernel"), ("nvtx", "kernel")),
        (levels, "", ALL, ("--fold-layers",), None),
        (levels, "", ALL, ("--no-forward",), None),
        (levels, "", ALL, ("--metric", "idle"), ("kernel",)),
        (levels, "", ALL, ("--metric", "host"), None),
        (levels, "", ALL, PLACE, None),
        (levels, "", ALL, ("--state", '{"options":["--levels","nvtx"]}'), ("nvtx",)),
        (levels, "", replace(ALL, levels={"nsys-sqlite": KERNELS}), (), None),
    ],
)
def test_who_wins(
    shown: Callable[..., Shown],
    setting: Callable[[Shown], object],
    config: str,
    remembered: Preferences,
    options: tuple[str, ...],
    expected: object,
) -> None:
    assert setting(shown(config, remembered, *options)) == expected


@pytest.mark.parametrize("words", [["view", "--print"], ["info"], ["export", "-f", "folded"]])
def test_what_is_printed_and_exported_does_not_depend_on_it(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    command = [words[0], str(TORCH), *words[1:], *(["-o", "-"] if words[0] == "export" else [])]
    monkeypatch.setenv("FLAME_CONFIG", os.devnull)
    assert main(command) == 0
    before = capsys.readouterr().out
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    keep(tmp_path / "flame" / "preferences.json", **REMEMBERED, levels={"kineto": KERNELS})
    assert main(command) == 0
    assert capsys.readouterr().out == before != ""


# What is remembered


@pytest.mark.deep
@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (("t",), Preferences(theme="flame-light")),
        (("t", "t", "t", "t"), Preferences()),
        (("d",), Preferences(details=False)),
        (("d", "d"), Preferences()),
        (("K",), Preferences(kernel_names="base")),
        (("K", "K", "K"), Preferences()),
        (("K", "z"), Preferences()),
        (("K", "z", "Z"), Preferences(kernel_names="base")),
        (("O",), Preferences(colours="category")),
        (("P",), Preferences(hide_framework=True)),
        (("P", "P"), Preferences()),
        (("L", "5"), Preferences(levels={"kineto": KERNELS})),
        (("L", "3"), Preferences(levels={"kineto": MODULES})),
        (("L", "3", "L", "1"), Preferences()),
        (("B",), Preferences(levels={"kineto": ShownLevels(forward=False)})),
        (("ctrl+n",), Preferences()),
        (("L", "5", "ctrl+n", "ctrl+n", "ctrl+n"), Preferences(levels={"kineto": KERNELS})),
        (("i", "c", "s", "enter", "x"), Preferences()),
    ],
)
async def test_what_keys_leave_behind(
    path: Path, keys: tuple[str, ...], expected: Preferences
) -> None:
    forward = LoadOptions(forward=True)
    async with open_app(TORCH, options=forward, start=started(path)) as user:
        await user.press(*keys)
        assert kept(user, path) == expected


async def test_levels_of_another_table_are_not_those_of_the_trace(path: Path) -> None:
    host = replace(USUAL, metric="host")
    async with open_app(TORCH, selection=host, start=started(path)) as user:
        await user.press("L", "6")
        assert user.levels == "python,native,kernel"
        assert kept(user, path) == Preferences()


async def test_levels_that_an_option_has_chosen_are_not_remembered_by_way_of_a_metric(
    path: Path,
) -> None:
    keep(path, levels={"kineto": MODULES})
    asked = replace(USUAL, levels=("kernel",))
    async with open_app(TORCH, selection=asked, start=Start(Memory(path))) as user:
        await user.press("M", "M")  # FLOPs are between
        assert user.screen.shown.metric.table == "host"
        await user.press("ctrl+n", "ctrl+n")
        assert user.levels == "kernel"
        assert kept(user, path).levels == {"kineto": MODULES}


async def test_the_next_start_is_as_the_last_one_was(path: Path) -> None:
    async with open_app(TORCH, start=started(path)) as user:
        await user.press("t", "d", "K", "O", "P", "L", "3")
        before = user.screen.shown.selection
        user.app.start.memory.settle()
    async with open_app(TORCH, start=started(path)) as user:
        assert user.app.theme == "flame-light"
        assert not user.screen.query_one("#details").display
        assert user.screen.shown.selection == before
        assert "as last time" in user.read("recalled")
        assert user.screen.parts.recalled.display


async def test_a_terminal_that_shows_one_theme_alone_leaves_the_theme(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    keep(path, theme="flame-light")
    async with open_app(TORCH, start=started(path)) as user:
        await user.press("t")
        assert kept(user, path).theme == "flame-light"


async def test_the_theme_for_the_background_needs_no_memory(path: Path) -> None:
    background = TerminalBackground()
    background.light = True
    start = replace(started(path), background=background)
    async with open_app(TORCH, start=start) as user:
        assert user.app.theme == "flame-light"
        await user.press("t", "t", "t")
        assert user.app.theme == "flame-dark"
        assert kept(user, path).theme == "flame-dark"
        await user.press("t")
        assert kept(user, path).theme is None


# Another trace than the one they were chosen for


async def test_each_kind_of_trace_has_levels_of_its_own(path: Path) -> None:
    keep(path, levels={"kineto": KERNELS})
    async with open_app(NSYS, start=started(path)) as user:
        assert user.screen.shown.selection.levels is None
        assert not user.screen.parts.recalled.display
        await user.press("L", "4")
        assert kept(user, path).levels.keys() == {"kineto", "nsys-sqlite"}


async def test_several_files_are_another_kind_than_one(path: Path, tmp_path: Path) -> None:
    keep(path, levels={"nsys-sqlite": KERNELS})
    other = tmp_path / "other.sqlite"
    other.write_bytes(NSYS.read_bytes())
    async with open_app(NSYS, more=[other], start=started(path)) as user:
        assert user.levels.startswith("rank,")


@pytest.mark.parametrize("levels", ["shapes,kernel", "python,kernel", "sass", "native"])
async def test_levels_that_the_trace_has_nothing_of_are_not_shown_and_that_is_said(
    path: Path, decode: Path, levels: str
) -> None:
    unfit = ShownLevels(tuple(levels.split(",")))
    keep(path, levels={"nsys-sqlite": unfit})
    async with open_app(decode, start=started(path)) as user:
        assert user.screen.shown.selection == USUAL
        assert "do not fit this trace" in user.read("status")
        assert kept(user, path).levels == {"nsys-sqlite": unfit}  # the next may have them


async def test_levels_that_show_nothing_with_a_filter_give_way(path: Path) -> None:
    keep(path, levels={"kineto": KERNELS})
    asked = replace(USUAL, where=(ShowStacks("train_step"),))
    async with open_app(TORCH, selection=asked, start=started(path)) as user:
        assert user.screen.shown.selection == asked
        assert user.app.failure is None


async def test_frames_of_frameworks_are_hidden_only_where_there_is_code(
    path: Path, decode: Path
) -> None:
    keep(path, hide_framework=True)
    async with open_app(decode, start=started(path)) as user:
        assert user.screen.shown.selection.where == ()


# Forgetting


async def test_all_is_forgotten_and_shown_as_usual_and_that_can_be_undone(path: Path) -> None:
    keep(path, **REMEMBERED, levels={"kineto": KERNELS, "fdump": KERNELS})
    async with open_app(TORCH, start=started(path)) as user:
        recalled = user.screen.shown.selection
        await user.screen.run_action("forget")
        await user.settle()
        assert kept(user, path) == Preferences()
        assert user.screen.shown.selection == USUAL
        assert user.app.theme == "flame-dark"
        assert user.screen.query_one("#details").display
        assert user.read("status").split("  ")[0].strip().startswith("forgotten: the theme, ")
        assert not user.screen.parts.recalled.display
        await user.press("z")
        assert user.screen.shown.selection == recalled


async def test_what_was_not_remembered_stays_when_all_is_forgotten(path: Path) -> None:
    keep(path, kernel_names="base", levels={"fdump": KERNELS})
    asked = replace(USUAL, levels=("nvtx", "kernel"), colours="category")
    async with open_app(TORCH, selection=asked, start=started(path)) as user:
        await user.screen.run_action("forget")
        await user.settle()
        assert user.screen.shown.selection == asked


async def test_a_click_on_the_chip_forgets(path: Path) -> None:
    keep(path, colours="category")
    async with open_app(TORCH, start=started(path)) as user:
        await user.pilot.click("#recalled", offset=(1, 0))
        await user.settle()
        assert kept(user, path) == Preferences()


async def test_where_nothing_is_remembered_that_is_said(path: Path) -> None:
    async with open_app(TORCH, start=started(path)) as user:
        await user.screen.run_action("forget")
        assert "nothing is remembered" in user.read("status")


# Copied command lines


@asynccontextmanager
async def copying(start: Start | None) -> Any:
    async with open_app(TORCH, start=start) as user:
        await user.press("C")
        yield user.app.clipboard


async def test_a_copied_line_does_not_depend_on_what_is_remembered(path: Path) -> None:
    async with copying(started(path)) as line:
        assert line.endswith(f"{TORCH} --state '{{}}'")
    async with copying(None) as line:
        assert line.endswith(str(TORCH))


# Recordings that grow


def test_what_a_recording_has_is_not_known_at_first() -> None:
    recalled = replace(ALL, levels={"fdump": KERNELS})
    shown = with_preferences(recalled, DEFAULTS.framework, USUAL)
    assert shown.levels is None
    assert shown.naming.kernel_names == "base"
    assert [type(one) for one in shown.where] == [HideFramework]


def test_kinds_are_told_by_format_samples_and_number() -> None:
    assert kind_of(load(TORCH)) == "kineto"
    assert kind_of(load(SAMPLES / "six_levels" / "tiny_llm.fdump")) == "fdump with samples"


def test_nothing_of_a_projection_is_held_on_to() -> None:
    fields = vars(Remembering(Memory(), _Shown()))  # type: ignore[arg-type]
    assert not any(isinstance(value, _Shown) for value in fields.values())


class _Shown:
    selection = USUAL

    class metric:  # noqa: N801
        table = "gpu"
