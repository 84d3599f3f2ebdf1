"""Clients of all kinds while 16 threads launch and push ranges: no race, no bad access, no loss."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from flame.attach.library.control import Control
from tests.inject.recorded_program import until
from tests.inject.test_sanitizers import OPTIONS
from tests.support.writers.fdumprecords import header, records

pytestmark = pytest.mark.deep

THREADS = 16
ROUNDS = {"thread": 20, "address": 60}
FORKS = {"thread": 0, "address": 3}
ENDED, STOPPED = 1, 2
MODES = ("continuous", "off", "serialized:20", "continuous:9", "off", "serialized")
BAD = (b"what\n", b'{"do":"status"', b"x" * 5000, b'{"do":"flush"}\n' * 50, b"\n" * 200)

Stressed = Callable[[str], tuple[subprocess.Popen[str], Path]]


@pytest.fixture
def stressed(
    sanitized: Callable[[str], Any],
    compiled: Callable[..., Path],
    injected_env: Callable[..., dict[str, str]],
    tmp_path: Path,
) -> Stressed:
    """Starts stress.cpp with a sanitizer: the process, and its dump once there is a socket."""

    def run(kind: str) -> tuple[subprocess.Popen[str], Path]:
        build = sanitized(kind)
        program = compiled("stress.cpp", *build.flags)
        env = injected_env(tmp_path, fake=build.fake, library=build.library, **OPTIONS)
        process = subprocess.Popen(
            [str(program), str(THREADS), str(ROUNDS[kind]), str(FORKS[kind])],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        (socket_path,) = until(lambda: list(tmp_path.glob(f"{process.pid}-*.sock")))
        return process, socket_path.with_suffix(".fdump")

    return run


def good_client(process: subprocess.Popen[str], dump: Path) -> int:
    answers = 0
    while process.poll() is None:
        if control := Control.open(dump):
            answers += (control.status() is not None) + control.flush()
            control.close()
    return answers


def bad_client(process: subprocess.Popen[str], dump: Path) -> int:
    turn = 0
    while process.poll() is None:
        with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
            connection.settimeout(0.2)
            connection.connect(str(dump.with_suffix(".sock")))
            connection.sendall(BAD[turn % len(BAD)])
            if turn % 2:
                connection.recv(100)
        turn += 1
    return turn


def sampling_client(process: subprocess.Popen[str], dump: Path) -> int:
    turn = answers = 0
    while process.poll() is None:
        if control := Control.open(dump):
            reply = control.sample(MODES[turn % len(MODES)])
            answers += reply is not None and reply.ok
            control.close()
        turn += 1
    return answers


@pytest.mark.parametrize("kind", ["thread", "address"])
def test_clients_disturb_nothing(stressed: Stressed, kind: str) -> None:
    process, dump = stressed(kind)
    with ThreadPoolExecutor(5) as pool:
        clients = (good_client, good_client, bad_client, bad_client, sampling_client)
        counts = [pool.submit(client, process, dump) for client in clients]
        output, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")
    assert all(count.result() > 0 for count in counts)
    said, of = json.loads(output), records(dump)
    assert header(dump)["state"] == ENDED and header(dump)["dropped"] == 0
    steady = [number for number, name in of["text"].items() if name == b"steady"]
    assert sum(row["symbol"] in steady for row in of["kernel"]) == said["launches"]
    assert not dump.with_suffix(".sock").exists()
    # Samples came and went; whatever was loaded before or meanwhile is there for them.
    cubins = {int(path.stem, 16) for path in dump.parent.glob("cubins/*.cubin")}
    assert len(of["sample"]) and set(of["sample"]["crc"].tolist()) <= cubins


@pytest.mark.parametrize("kind", ["thread", "address"])
def test_a_stop_disturbs_nothing(stressed: Stressed, kind: str) -> None:
    process, dump = stressed(kind)
    control = until(lambda: Control.open(dump))
    assert control.stop()
    control.close()
    assert process.poll() is None
    head = header(dump)
    assert (head["state"], head["flags"]) == (ENDED, STOPPED)
    assert head["tail"] == dump.stat().st_size
    _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")
