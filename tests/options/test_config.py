"""The user's configuration file: where it is, what may stand in it, and how mistakes are told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flame.core.errors import UsageError
from flame.options.config import Config, config_path, is_in_browser, read_config
from flame.tui.shell.keymap import keymap_of
from tests.support.paths import ROOT, SAMPLES


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file, not there yet."""
    monkeypatch.delenv("FLAME_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "flame").mkdir()
    return tmp_path / "flame" / "config.toml"


def complaint(file: Path, content: str | bytes) -> str:
    """What is said of ``content``, without the file's name."""
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError) as raised:
        read_config()
    name, _, said = str(raised.value).partition(": ")
    assert name == str(file)
    assert "\n" not in said
    return said


# Where


def test_it_is_in_the_folder_for_configuration(file: Path) -> None:
    assert config_path() == file


@pytest.mark.parametrize("folder", ["", "relative", None])
def test_or_below_the_home_folder(monkeypatch: pytest.MonkeyPatch, folder: str | None) -> None:
    monkeypatch.delenv("FLAME_CONFIG", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    if folder is not None:
        monkeypatch.setenv("XDG_CONFIG_HOME", folder)
    monkeypatch.setenv("HOME", "/somewhere")
    assert config_path() == Path("/somewhere/.config/flame/config.toml")


def test_another_file_may_be_named(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("details = false")
    other = tmp_path / "other.toml"
    other.write_text("ascii = true")
    monkeypatch.setenv("FLAME_CONFIG", str(other))
    assert read_config() == Config(ascii=True)
    monkeypatch.setenv("FLAME_CONFIG", os.devnull)
    assert read_config() == Config()
    monkeypatch.setenv("FLAME_CONFIG", "")
    assert read_config() == Config(details=False)


def test_a_file_that_is_named_has_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLAME_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match=r"none\.toml: no such file \(FLAME_CONFIG names it\)"):
        read_config()


# What


def test_without_a_file_all_is_as_usual(file: Path) -> None:
    assert read_config() == Config()


def test_everything_that_may_stand_in_it(file: Path) -> None:
    file.write_text(
        """
        theme = "flame-light"
        details = false
        ascii = true
        editor = "code --wait"
        kernel_names = "demangled"
        recent = false
        remember = false
        cache = false
        framework = ["^x:", "y$"]
        [keys]
        undo = "ctrl+z,z"
        [report]
        phases = "/etc/phases.json"
        iteration = "^batch"
        """
    )
    keys = {"undo": "ctrl+z,z"}
    report = {"phases": "/etc/phases.json", "iteration": "^batch"}
    off = (False, False, False)
    assert read_config() == Config(
        "flame-light", False, True, "code --wait", "demangled", *off, ["^x:", "y$"], keys, report
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("details = ", "no TOML: Invalid value (at end of document)"),
        ("details = true\ndetails = true", "no TOML: Cannot overwrite a value (at end"),
        (b"editor = '\xff'", "no TOML: 'utf-8' codec can't decode byte 0xff"),
        pytest.param("x = " + "[" * 5000, "no TOML that can be read: values are nested", id="deep"),
        ("teme = 'flame-light'", "unknown setting 'teme': did you mean theme?"),
        ("xyz = 1", "unknown setting 'xyz': there is theme, details, ascii, editor, kernel_names"),
        ("details = 1", "details has to be true or false"),
        ("framework = 'x'", 'framework has to be a list of texts, as in ["…", "…"]'),
        ("framework = [1]", 'framework has to be a list of texts, as in ["…", "…"]'),
        ("framework = ['x', '(']", "framework: '(' is not a regular expression: missing )"),
        ("ascii = 'yes'", "ascii has to be true or false"),
        ("theme = true", 'theme has to be text in quotes, as in "…"'),
        ("theme = 'light'", "unknown theme 'light': did you mean flame-light?"),
        (
            "theme = 'x'",
            "unknown theme 'x': there is auto, flame-dark, flame-light, flame",
        ),
        ("kernel_names = 'mangle'", "unknown kernel_names 'mangle': did you mean mangled?"),
        ("keys = 'q'", "keys has to be a table, as in [keys]"),
        ("[keys]\nquit = ['q']", 'keys.quit has to be text in quotes, as in "…"'),
        ("report = 'x'", "report has to be a table, as in [report]"),
        ("[report]\nphase = 'x'", "unknown option of [report] 'phase': did you mean phases?"),
        ("[report]\ntop = '3'", "unknown option of [report] 'top': there is phases, iteration"),
        ("[report]\nphases = 3", 'report.phases has to be text in quotes, as in "…"'),
        ("[report]\niteration = '('", "report.iteration: '(' is not a regular expression"),
    ],
)
def test_mistakes_are_told_in_one_line(file: Path, content: str | bytes, said: str) -> None:
    assert complaint(file, content).startswith(said)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("phases.json", "{folder}/phases.json"),
        ("~/p.json", "/somewhere/p.json"),
        ("/etc/p", "/etc/p"),
    ],
)
def test_a_file_that_it_names_is_beside_it(
    file: Path, monkeypatch: pytest.MonkeyPatch, said: str, meant: str
) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    file.write_text(f"[report]\nphases = '{said}'")
    assert read_config().report == {"phases": meant.format(folder=file.parent)}


def test_a_file_that_cannot_be_read(file: Path) -> None:
    file.mkdir()
    with pytest.raises(UsageError, match=r"config\.toml: is a directory"):
        read_config()


# At the command line


def flame(words: list[str], config: Path) -> tuple[int, str, str]:
    environment = {**os.environ, "FLAME_CONFIG": str(config), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "flame", *words], capture_output=True, text=True, env=environment
    )
    return done.returncode, done.stdout, done.stderr


def test_what_is_printed_does_not_depend_on_it(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("=")
    sample = str(SAMPLES / "decode_small.sqlite")
    code, text, said = flame(["view", sample, "--print"], broken)
    assert (code, said) == (0, "")
    assert text == flame(["view", sample, "--print"], Path(os.devnull))[1]
    assert flame(["info", sample], broken)[0] == 0


def test_the_help_says_where_it_is() -> None:
    assert "/flame/config.toml" in flame(["view", "--help"], Path("none"))[1]


@pytest.mark.parametrize(
    ("driver", "expected"), [("", False), ("textual.drivers.web_driver:WebDriver", True)]
)
def test_a_server_tells_by_the_driver(
    monkeypatch: pytest.MonkeyPatch, driver: str, expected: bool
) -> None:
    monkeypatch.setenv("TEXTUAL_DRIVER", driver)
    assert is_in_browser() is expected


def test_the_example_in_the_manual_is_understood(file: Path) -> None:
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    file.write_text(page.partition("```toml\n")[2].partition("```")[0])
    config = read_config()
    assert config.theme == "flame-light"
    assert keymap_of(config.keys)
