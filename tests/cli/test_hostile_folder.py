"""Every command, run in a folder of somebody else: nothing of what lies there is run."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from aiohttp import ClientSession, WSMsgType

from tests.support.paths import SAMPLES
from tests.support.served import Served
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.deep

FLAME = Path(sys.executable).with_name("flame")
SAMPLE = SAMPLES / "decode_small.sqlite"
PROGRAMS = (
    *("cc", "gcc", "g++", "ld", "objdump", "ldconfig", "git", "nano", "ncu", "nsys", "nvcc"),
    *("nvdisasm", "nvidia-smi", "ps", "py-spy", "python3", "setpriv", "sh", "tmux", "uname", "vi"),
)
MODULES = {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize"}
# What a program has imported before it begins cannot be told from what it imports again.
BUILT_IN = {*sys.builtin_module_names, "__main__", "__future__"}


@pytest.fixture(scope="module")
def trap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which everything that could be run by mistake says so in ``../ran``."""
    folder = tmp_path_factory.mktemp("hostile") / "folder"
    folder.mkdir()
    ran = folder.parent / "ran"
    for name in MODULES - BUILT_IN:
        code = f"open({str(ran)!r}, 'a').write({f'module {name}' + chr(10)!r})\n"
        (folder / f"{name}.py").write_text(code)
    script = f'#!/bin/sh\necho "program $0" >> {ran}\n'
    (folder / "nvidia" / "cu13" / "bin").mkdir(parents=True)
    for path in [*map(folder.joinpath, PROGRAMS), folder / "nvidia" / "cu13" / "bin" / "nvdisasm"]:
        path.write_text(script)
        path.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def nothing_has_run(trap: Path) -> None:
    """Forget what an earlier test has run."""
    (trap.parent / "ran").unlink(missing_ok=True)


def environment(**more: str) -> dict[str, str]:
    """What a careless user has: the current folder is on PATH, before all others even."""
    known = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return {**known, "PATH": f":.:{os.environ['PATH']}", "FLAME_CONFIG": os.devnull, **more}


def ran(trap: Path) -> list[str]:
    """What of the folder has been run."""
    marks = trap.parent / "ran"
    return marks.read_text().splitlines() if marks.exists() else []


def run(trap: Path, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [FLAME, *words],
        cwd=trap,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )


def test_the_trap_catches(trap: Path, tmp_path: Path) -> None:
    other = tmp_path / "folder"
    shutil.copytree(trap, other)
    # CPython 3.14 imports linecache and fails before it gets to what it is told.
    subprocess.run([sys.executable, "-c", "import secrets"], cwd=other, check=False)
    assert ran(trap)


COMMANDS: Sequence[Sequence[str | Path]] = (
    ("view", SAMPLE, "--print"),
    ("view", SAMPLE, SAMPLES / "torch_small.pt.trace.json.gz", "--print"),
    ("view", "no_text", "--print"),
    ("view", "report.nsys-rep", "--print"),
    ("view", "report.ncu-rep", "--print"),
    ("info", SAMPLE, "--json"),
    ("info", SAMPLES / "six_levels"),
    ("export", SAMPLE, "-f", "folded", "-o", "-"),
    ("export", SAMPLE, "-f", "speedscope", "-o", "-"),
    ("cache",),
    ("doctor",),
    ("doctor", "--json"),
    ("attach", "--list"),
    ("attach", "--stop", "nobody"),
    ("record", "-o", "recorded", "--", "/bin/true"),
)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: "_".join(Path(w).name for w in words))
def test_nothing_of_the_folder_is_run(trap: Path, words: Sequence[str | Path]) -> None:
    shutil.copytree(SAMPLES / "six_levels", trap / "no_text", dirs_exist_ok=True)
    for kept in (trap / "no_text" / "cubins").glob("*.sass"):
        kept.unlink()
    for report in ("report.nsys-rep", "report.ncu-rep"):
        (trap / report).write_bytes(b"NVR\0")
    done = run(trap, *words)
    assert done.returncode in (0, 1, 2, 3), done.stderr
    assert ran(trap) == []


async def test_nothing_of_the_folder_is_run_by_an_open_page(trap: Path) -> None:
    served = Served(str(SAMPLE), folder=trap)
    origin = f"http://127.0.0.1:{served.port}"
    try:
        async with (
            asyncio.timeout(PATIENCE),
            ClientSession() as session,
            session.ws_connect(f"{served.url}ws", origin=origin) as page,
        ):
            shown = b""
            while b"forward" not in shown:
                message = await page.receive()
                assert message.type == WSMsgType.BINARY, message
                shown += message.data
    finally:
        served.close()
    assert ran(trap) == []
