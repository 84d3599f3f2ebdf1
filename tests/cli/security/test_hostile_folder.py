"""Every command, run in a folder of somebody else: nothing of what lies there is run."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest
from aiohttp import ClientSession, WSMsgType

from flame.cli import parser
from tests.cli.job_terminal import PROMPT, Shell
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
    own = {"FLAME_CONFIG": os.devnull, "XDG_CACHE_HOME": f"{os.environ['TMPDIR']}/cache"}
    return {**known, "PATH": f":.:{os.environ['PATH']}", **own, **more}


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
    ("report", SAMPLE),
    ("report", SAMPLE, "--html", "-o", "report.html"),
    ("diff", SAMPLE, SAMPLE),
    ("ranks", SAMPLE, SAMPLE, "-o", "local.flamesum", "--force"),
    ("ranks", SAMPLE, "-o", "dask.flamesum", "--force", "--dask", "local", "--workers", "1"),
    ("top", SAMPLE),
    ("cache",),
    ("cache", "clear"),
    ("mcp", "."),
    ("completion", "bash"),
    ("doctor",),
    ("doctor", "--json"),
    ("attach", "--list"),
    ("attach", "--stop", "nobody"),
    ("record", "-o", "recorded", "--", "/bin/true"),
)


def test_every_command_is_tried() -> None:
    assert {words[0] for words in COMMANDS} == parser.COMMANDS.keys()


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: "_".join(Path(w).name for w in words))
def test_nothing_of_the_folder_is_run(trap: Path, words: Sequence[str | Path]) -> None:
    if "--dask" in words and not find_spec("distributed"):
        pytest.skip("Dask is not here")
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


def test_nothing_of_the_folder_is_run_by_the_app_in_a_terminal(trap: Path) -> None:
    shell = Shell()
    known = environment()
    given = [f"{name}={known[name]}" for name in ("FLAME_CONFIG", "PATH", "XDG_CACHE_HOME")]
    try:
        shell.run(f"cd {shlex.quote(str(trap))}; export {shlex.join(given)}")
        shell.press(f"{shlex.join([str(FLAME), str(SAMPLE)])}\n")
        shell.read_until("forward")
        shell.press("q")
        shell.read_until(PROMPT)
    finally:
        shell.close()
    assert ran(trap) == []


def test_nothing_of_the_folder_is_run_for_an_assistant(trap: Path) -> None:
    pytest.importorskip("mcp")
    shutil.copy(SAMPLE, trap)
    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    about["clientInfo"] = {"name": "test", "version": "1"}
    asked = {"name": "top", "arguments": {"path": SAMPLE.name}}
    with subprocess.Popen(
        [FLAME, "mcp", "."],
        cwd=trap,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin and server.stdout
        server.stdin.write(request("initialize", 1, about) + request("notifications/initialized"))
        server.stdin.write(request("tools/call", 2, asked))
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.stdin.close()
    assert not answers[1]["result"]["isError"]
    assert ran(trap) == []


def request(method: str, number: int | None = None, params: object = None) -> str:
    """A line of the Model Context Protocol."""
    given = {"id": number, "params": params}
    more = {key: value for key, value in given.items() if value is not None}
    return json.dumps({"jsonrpc": "2.0", "method": method, **more}) + "\n"
