"""``flame record`` on a terminal: its line keeps to the last row, and ctrl+c and ctrl+z work."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.job_terminal import ROWS, Screen, Shell
from tests.cli.programs import KERNELS, PATIENT

REGION = re.compile(r"\x1b\[1;(\d+)r")
WHOLE = "\x1b[r"
LINES = """
import time
for number in range(60):
    print(f"line {number}", flush=True)
    time.sleep(0.05)
"""
RAW = """
import sys, termios, time, tty
time.sleep(1.5)
before = termios.tcgetattr(0)
tty.setraw(0)
time.sleep(1)
print("full screen", end="", flush=True)
time.sleep(2)
print("and back", end="", flush=True)
termios.tcsetattr(0, termios.TCSADRAIN, before)
time.sleep(1.5)
"""


@pytest.fixture
def shell(recorder: None) -> Iterator[Shell]:
    shell = Shell()
    yield shell
    shell.close()


def line(folder: Path, code: str, *options: str, arguments: str = "") -> str:
    """The command line that records a program of this code."""
    (folder / "program.py").write_text(code)
    program = shlex.join([sys.executable, "-m", "flame", "record", *options])
    return f"{program} {sys.executable} program.py {arguments}"


def is_released(text: str) -> bool:
    """Whether the last that was said of the scroll region is that there is none."""
    last = [found.start() for found in REGION.finditer(text)][-1]
    return text.rfind(WHOLE) > last


@pytest.mark.deep
def test_the_programs_lines_are_all_there_and_flames_is_below(shell: Shell, folder: Path) -> None:
    text = shell.run(line(folder, KERNELS + LINES))
    seen = [row for row in Screen(text).everything if row.startswith("line ")]
    assert seen == [f"line {number}" for number in range(60)]
    assert is_released(text)
    # While it ran: everything up to the last time that the line was written.
    during = Screen(text[: text.index("\x1b8", text.rindex("flame: recording"))])
    *above, last = during.lines
    assert re.match(r"flame: recording 0:0\d, 1 process, 20 kernels, \d+ kB", last)
    assert not any("recording" in row for row in above)
    end = Screen(text)
    assert not any("flame: recording 0:" in row for row in end.everything)
    assert "flame: see it with: flame view program.flame" in end.everything


@pytest.mark.deep
def test_the_line_comes_at_most_twice_a_second(shell: Shell, folder: Path) -> None:
    text = shell.run(line(folder, "import time; time.sleep(4)"))
    assert 3 <= text.count("flame: recording") <= 7


@pytest.mark.parametrize("options", [("-q",), ()])
def test_short_or_quiet_commands_leave_the_terminal_alone(
    options: tuple[str, ...], shell: Shell, folder: Path
) -> None:
    text = shell.run(line(folder, "import time; time.sleep(2)" if options else "pass", *options))
    assert "\x1b[1;" not in text
    assert "\x1b7" not in text


def test_a_dumb_terminal_is_left_alone(recorder: None, folder: Path) -> None:
    shell = Shell(term="dumb")
    try:
        text = shell.run(line(folder, "import time; time.sleep(2)"))
    finally:
        shell.close()
    assert "\x1b" not in text


def test_a_job_in_the_background_leaves_the_terminal_alone(shell: Shell, folder: Path) -> None:
    shell.run(f"{line(folder, 'import time; time.sleep(2)')} &")
    text = shell.read_for(2.5) + shell.run("wait; echo all over")
    assert "all over" in text
    assert "\x1b[1;" not in text


@pytest.mark.deep
def test_a_program_that_reads_single_keys_has_the_whole_screen(shell: Shell, folder: Path) -> None:
    text = shell.run(line(folder, RAW))
    before, _, rest = text.partition("full screen")
    during, _, after = rest.partition("and back")
    assert REGION.search(before) and is_released(before)
    assert "\x1b" not in during
    assert REGION.search(after) and is_released(after)


@pytest.mark.deep
def test_the_line_follows_the_size_of_the_window(shell: Shell, folder: Path) -> None:
    shell.press(f"{line(folder, 'import time; time.sleep(5)')}\n")
    shell.read_until("\x1b[1;23r")
    shell.resize(30)
    shell.read_until("\x1b[1;29r")
    shell.resize(5)
    assert "recording" not in shell.read_for(1.5).rpartition(WHOLE)[2]
    shell.resize(ROWS)
    shell.read_until("\x1b[1;23r")


def test_ctrl_c_reaches_the_command_once_and_flame_tells_the_rest(
    shell: Shell, folder: Path
) -> None:
    shell.press(f"{line(folder, KERNELS + PATIENT, arguments='SIGINT')}; echo code $?\n")
    shell.read_until("ready\r\n")
    shell.read_until("flame: recording")
    shell.press("\x03")
    text = shell.read_until("code 9")
    assert "heard SIGINT\r\n" in text
    assert "recorded program.flame" in text
    assert is_released("\x1b[1;23r" + text)


def test_ctrl_c_twice_ends_the_command_and_not_flame(shell: Shell, folder: Path) -> None:
    stubborn = "try:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('cleaning')\n"
    stubborn += "    time.sleep(60)\n"
    shell.press(f"{line(folder, KERNELS + 'print(1234)' + chr(10) + stubborn)}; echo code $?\n")
    shell.read_until("flame: recording")
    shell.press("\x03")
    shell.read_until("cleaning")
    shell.press("\x03")
    text = shell.read_until("code 130")
    assert "recorded program.flame: 1 process, 20 kernels" in text


@pytest.mark.deep
def test_ctrl_z_and_fg(shell: Shell, folder: Path) -> None:
    shell.press(f"{line(folder, KERNELS + LINES)}; echo code $?\n")
    shell.read_until("\x1b[1;23r")
    shell.press("\x1a")
    text = shell.read_until("Stopped")
    assert is_released("\x1b[1;23r" + text)
    assert "line" not in shell.read_for(1.5)
    shell.press("fg\n")
    text = shell.read_until("flame: see it with")
    assert "line 59" in text
    assert REGION.search(text)
    assert is_released(text)


def test_whoever_ends_flame_ends_the_command_and_the_line(shell: Shell, folder: Path) -> None:
    shell.press(f"{line(folder, KERNELS + 'time.sleep(60)')} & sleep 0.5; fg; echo code $?\n")
    shell.read_until("\x1b[1;23r")
    import psutil

    (flame,) = [one for one in psutil.Process(shell.pid).children() if "flame" in one.cmdline()]
    shell.output = b"\x1b[1;23r"
    flame.terminate()
    text = shell.read_until("code 143")
    assert is_released(text)
    assert "recorded program.flame" in text
