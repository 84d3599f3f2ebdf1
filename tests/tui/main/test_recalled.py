"""What the app begins with: the command line, a configuration, what is remembered, the usual."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flame.cli.main import main
from flame.core.loading.many import load
from flame.core.projection.filters import HideFramework
from flame.core.projection.selection import Selection
from flame.options.config import DEFAULTS, Config
from flame.options.preferences import Memory, Preferences
from flame.tui.session.recall import Remembering, kind_of, with_preferences
from flame.tui.shell.start import Start
from tests.support.paths import SAMPLES
from tests.tui.conftest import USUAL
from tests.tui.main.remembering import ALL, KERNELS, REMEMBERED, TORCH, keep
from tests.tui.main.remembering import _writing_is_waited_for as _writing_is_waited_for

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
