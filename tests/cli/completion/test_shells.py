"""What real shells offer where a person presses tab; each is left out where it is not installed."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flame.cli.completion.bash import bash_script
from flame.cli.completion.fish import fish_script
from flame.cli.completion.table import Takes, command_table
from flame.cli.completion.zsh import zsh_script
from flame.cli.parser import COMMANDS
from tests.support.waiting import PATIENCE

Complete = Callable[[str], list[str]]
SCRIPTS = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}

OFFERED = [
    ("flame vi", ["view"]),
    ("flame trace.sq", ["trace.sqlite"]),
    ("flame view --lev", ["--levels"]),
    ("flame view --levels nvtx,kern", ["nvtx,kernel"]),
    ("flame trace.sqlite --levels=kern", ["kernel"]),
    ("flame view --metric coun", ["count"]),
    ("flame view --phases trace.", ["trace.sqlite"]),
    ("flame view --time trace.", []),
    ("flame report --section findin", ["findings"]),
    ("flame export -f fol", ["folded"]),
    ("flame completion fi", ["fish"]),
]


def bash(line: str) -> list[str]:
    """What the function offers for the words of a line, as readline splits them."""
    words = [word for word in re.split(r"\s+|(=)", line) if word is not None]
    call = "COMP_WORDS=(" + " ".join(map(shlex.quote, words)) + f"); COMP_CWORD={len(words) - 1}"
    text = f'source ./flame.bash; {call}; _flame; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", text], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


def fish(line: str) -> list[str]:
    text = f"source ./flame.fish; complete -C {shlex.quote(line)}"
    command = ["fish", "--no-config", "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [offer.partition("\t")[0].rpartition("=")[2] for offer in done.stdout.splitlines()]


def zsh(line: str) -> list[str]:
    """What stands on the line once tab has been pressed; nothing where that is the same."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(TERM="dumb", PS1="", COLUMNS="200")
        os.execvp("zsh", ["zsh", "-f", "-i"])
    begin = "autoload -Uz compinit; compinit -u -D; source ./flame.zsh; setopt no_beep"
    # `MARK` comes from the shell alone, and stands behind what tab has made of the line.
    widget = "done-now() { print -r -- MARK:$BUFFER: }; zle -N done-now; bindkey '^X' done-now"
    os.write(terminal, f"{begin}; {widget}; print REA''DY\n".encode())
    _read(terminal, "READY")
    os.write(terminal, f"{line}\t\x18".encode())
    found = re.search(r"MARK:(.*?):", _read(terminal, r"MARK:.*:"))
    os.close(terminal)
    os.waitpid(process, 0)
    assert found
    word = found[1].rstrip().rstrip(",").removeprefix(line.rpartition(" ")[0]).strip()
    return [] if found[1] == line else [word]


def _read(terminal: int, pattern: str) -> str:
    output, end = "", time.monotonic() + PATIENCE
    while not re.search(pattern, output):
        assert select.select([terminal], [], [], max(end - time.monotonic(), 0))[0], output
        output += os.read(terminal, 1 << 16).decode("utf-8", "replace")
    return output


SHELLS: dict[str, Complete] = {"bash": bash, "zsh": zsh, "fish": fish}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, folder: Path) -> Complete:
    name: str = request.param
    if not shutil.which(name):
        pytest.skip(f"no {name}")
    (folder / f"flame.{name}").write_text(SCRIPTS[name](command_table()))
    (folder / "trace.sqlite").write_bytes(b"")
    return SHELLS[name]


def test_a_shell_offers_what_fits(shell: Complete) -> None:
    for line, expected in OFFERED:
        found = [word.rpartition("=")[2] or word.rstrip("=") for word in shell(line)]
        assert (line, found) == (line, expected)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_shell_takes_the_script(name: str, folder: Path) -> None:
    if not shutil.which(name):
        pytest.skip(f"no {name}")
    (path := folder / "script").write_text(SCRIPTS[name](command_table()))
    done = subprocess.run([name, "-n", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_table_has_every_command_and_what_its_options_take() -> None:
    table = {command.name: command for command in command_table()}
    assert list(table) == list(COMMANDS)
    view = {name: option.value for option in table["view"].options for name in option.names}
    assert view["--levels"].takes == Takes.LIST
    assert "kernel" in view["--levels"].words
    assert view["--ncu"].takes == Takes.FILE
    assert view["--kernel"].takes == Takes.FREE
    assert view["--invert"].takes == Takes.NOTHING
    assert table["record"].value.takes == Takes.COMMAND
    assert table["completion"].value.words == ("bash", "zsh", "fish")
