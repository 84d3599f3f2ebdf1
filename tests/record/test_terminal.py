"""``flame record`` on a terminal: its line keeps to the last row, and ctrl+c and ctrl+z work."""

from __future__ import annotations

import re
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from flame.record import process
from flame.record import status_line as live
from flame.record.status_line import StatusLine
from tests.cli.job_terminal import PROMPT, ROWS, Screen, Shell
from tests.cli.programs import KERNELS, PATIENT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.deep

REGION = re.compile(r"\x1b\[1;(\d+)r")
WHOLE = "\x1b[r"
TAKEN = f"\x1b[1;{ROWS - 1}r"
A_WHILE = 0.5  # seconds, in which the line would be written many times
STILL = """
import os, time
def wait_for(name):
    while not os.path.exists(name): time.sleep(0.01)
"""
LINES = f"""{STILL}
for number in range(60):
    print(f"line {{number}}", flush=True)
    time.sleep(0.02)
wait_for("end")
"""
RAW = f"""{STILL}
import sys, termios, tty
wait_for("raw")
before = termios.tcgetattr(0)
tty.setraw(0)
wait_for("full")
print("full screen", end="", flush=True)
time.sleep({A_WHILE})
print("and back", end="", flush=True)
termios.tcsetattr(0, termios.TCSADRAIN, before)
wait_for("end")
"""
HASTY = """
import sys
from flame.cli.main import main
from flame.record import process, status_line
status_line._DELAY = {patience}
process._PAUSE = 0.02
sys.exit(main(sys.argv[1:]))
"""
"""``flame`` whose line comes after so many seconds, and often."""


@pytest.fixture
def shell(recorder: None) -> Iterator[Shell]:
    shell = Shell()
    yield shell
    shell.close()


def line(folder: Path, code: str, *options: str, arguments: str = "", patience: float = 0.0) -> str:
    """The command line that records a program of this code."""
    (folder / "program.py").write_text(code)
    (folder / "hasty.py").write_text(HASTY.format(patience=patience))
    program = shlex.join([sys.executable, "hasty.py", "record", *options])
    return f"{program} {sys.executable} program.py {arguments}"


def is_released(text: str) -> bool:
    """Whether the last that was said of the scroll region is that there is none."""
    last = [found.start() for found in REGION.finditer(text)][-1]
    return text.rfind(WHOLE) > last


@pytest.mark.deep
def test_the_programs_lines_are_all_there_and_flames_is_below(shell: Shell, folder: Path) -> None:
    shell.press(f"{line(folder, KERNELS + LINES)}\n")
    shell.read_to(lambda text: "line 59" in text and "20 kernels" in text)
    (folder / "end").touch()
    text = shell.read_until(PROMPT)
    seen = [row for row in Screen(text).everything if row.startswith("line ")]
    assert seen == [f"line {number}" for number in range(60)]
    assert is_released(text)
    # While it ran: everything up to the last time that the line was written.
    during = Screen(text[: text.index("\x1b8", text.rindex("flame: recording"))])
    *above, last = during.lines
    assert re.match(r"flame: recording \d+:\d\d, 1 process, 20 kernels, \d+ kB", last)
    assert not any("recording" in row for row in above)
    end = Screen(text)
    assert not any(re.search(r"flame: recording \d", row) for row in end.everything)
    assert "flame: see it with: flame view program.flame" in end.everything


def test_the_line_is_updated_twice_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def wait(_: object, seconds: float) -> SimpleNamespace | None:
        waited.append(seconds)
        return SimpleNamespace(si_signo=signal.SIGCHLD) if len(waited) > 8 else None

    monkeypatch.setattr(signal, "sigtimedwait", wait)
    monkeypatch.setattr(process, "_reaped", lambda child: 0)
    updates: list[int] = []
    assert process.wait_for(1, lambda: updates.append(len(waited))) == 0
    assert updates == [1, 2, 3, 4, 5, 6, 7, 8]
    assert sum(waited[:8]) == 4


def test_the_line_comes_after_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([100.0, 100.5, 100.9, 101.0, 101.0, 101.6, 101.6, 162.0, 162.0])
    monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=lambda: next(times)))
    shown: list[str] = []
    one = StatusLine(tmp_path, -1)
    monkeypatch.setattr(one._row, "show", shown.append)
    for _ in range(2):
        one.update()
    assert shown == []
    for _ in range(3):
        one.update()
    one.close()
    assert [text.partition(",")[0] for text in shown] == [
        "flame: recording 0:01",
        "flame: recording 0:01",
        "flame: recording 1:02",
    ]


@pytest.mark.parametrize("options", [("-q",), ()])
def test_short_or_quiet_commands_leave_the_terminal_alone(
    options: tuple[str, ...], shell: Shell, folder: Path
) -> None:
    code, patience = (f"import time; time.sleep({A_WHILE})", 0.0) if options else ("pass", 1e9)
    text = shell.run(line(folder, code, *options, patience=patience))
    assert "\x1b[1;" not in text
    assert "\x1b7" not in text


def test_a_dumb_terminal_is_left_alone(recorder: None, folder: Path) -> None:
    shell = Shell(term="dumb")
    try:
        text = shell.run(line(folder, f"import time; time.sleep({A_WHILE})"))
    finally:
        shell.close()
    assert "\x1b" not in text


def test_a_job_in_the_background_leaves_the_terminal_alone(shell: Shell, folder: Path) -> None:
    code = f"{STILL}open('begun', 'w').close(); wait_for('end')"
    text = shell.run(f"{line(folder, code)} &")
    wait_until((folder / "begun").exists)
    text += shell.read_for(A_WHILE)
    (folder / "end").touch()
    text += shell.run("wait; echo all over")
    assert "all over" in text
    assert "\x1b[1;" not in text


@pytest.mark.deep
def test_a_program_that_reads_single_keys_has_the_whole_screen(shell: Shell, folder: Path) -> None:
    shell.press(f"{line(folder, RAW)}\n")
    shell.read_until(TAKEN)
    (folder / "raw").touch()
    shell.read_to(is_released)
    (folder / "full").touch()
    shell.read_to(lambda text: REGION.search(text.partition("and back")[2]))
    (folder / "end").touch()
    before, _, rest = shell.read_until(PROMPT).partition("full screen")
    during, _, after = rest.partition("and back")
    assert is_released(before)
    assert "\x1b" not in during
    assert is_released(after)


@pytest.mark.deep
def test_the_line_follows_the_size_of_the_window(shell: Shell, folder: Path) -> None:
    code = f"{STILL}wait_for('end')"
    shell.press(f"{line(folder, code)}\n")
    shell.read_until(TAKEN)
    shell.resize(30)
    shell.read_until("\x1b[1;29r")
    shell.resize(5)
    shell.read_to(is_released)
    assert "recording" not in shell.read_for(A_WHILE)
    shell.resize(ROWS)
    shell.read_until(TAKEN)


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
    assert is_released(TAKEN + text)


def test_ctrl_c_twice_ends_the_command_and_not_flame(shell: Shell, folder: Path) -> None:
    # In small steps: a signal just before a long call is seen after it.
    wait = "for _ in range(6000): time.sleep(0.01)\n"
    stubborn = f"try:\n    {wait}except KeyboardInterrupt:\n    print('cleaning')\n    {wait}"
    shell.press(f"{line(folder, KERNELS + 'print(1234)' + chr(10) + stubborn)}; echo code $?\n")
    shell.read_to(lambda text: "1234" in text and "20 kernels" in text)
    shell.press("\x03")
    shell.read_until("cleaning")
    shell.press("\x03")
    text = shell.read_until("code 130")
    assert "recorded program.flame: 1 process, 20 kernels" in text


@pytest.mark.deep
def test_ctrl_z_and_fg(shell: Shell, folder: Path) -> None:
    shell.press(f"{line(folder, KERNELS + LINES)}; echo code $?\n")
    shell.read_until(TAKEN)
    shell.press("\x1a")
    text = shell.read_until("Stopped")
    assert is_released(TAKEN + text)
    assert "line" not in shell.read_for(A_WHILE)
    shell.press("fg\n")
    shell.read_to(lambda text: "line 59" in text and REGION.search(text))
    (folder / "end").touch()
    text = shell.read_until("flame: see it with")
    assert is_released(text)


def test_whoever_ends_flame_ends_the_command_and_the_line(shell: Shell, folder: Path) -> None:
    command = line(folder, KERNELS + "open('begun', 'w').close()\ntime.sleep(60)")
    wait = "until [ -e begun ]; do sleep 0.01; done"
    shell.press(f"{command} & {wait}; fg; echo code $?\n")
    shell.read_until(TAKEN)
    import psutil

    (flame,) = [one for one in psutil.Process(shell.pid).children() if "hasty.py" in one.cmdline()]
    shell.output = TAKEN.encode()
    flame.terminate()
    text = shell.read_until("code 143")
    assert is_released(text)
    assert "recorded program.flame" in text
