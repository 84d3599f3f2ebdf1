"""Clients of all kinds while 16 threads launch and push ranges: no race, no bad access, no loss."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from flame.attach.library import control as control_module
from flame.attach.library.control import Control
from tests.inject.recorded_program import until
from tests.inject.test_sanitizers import OPTIONS
from tests.support.waiting import PATIENCE, wait_until
from tests.support.writers.fdumprecords import header, records

pytestmark = pytest.mark.deep

THREADS = 16
ROUNDS = {"thread": 20, "address": 60}
FORKS = 0  # ASan's allocator keeps for ever the locks of a thread that answers at a fork
# PC sampling is reset time and again, while threads launch.
FAULTS = {"thread": "pc_oom:300", "address": ""}
ENDED, STOPPED = 1, 2
SAMPLES_LOST = 6  # DropCause in dump.h
MODES = ("continuous", "off", "serialized:20", "continuous:9", "off", "serialized")
BAD = (b"what\n", b'{"do":"status"', b"x" * 5000, b'{"do":"flush"}\n' * 50, b"\n" * 200)

Stressed = Callable[[str], tuple[subprocess.Popen[str], Path]]


@pytest.fixture(autouse=True)
def _with_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many clients, a sanitizer and whatever else runs make every answer late."""
    for limit in ("_SOON", "_WORK", "_LONG"):
        monkeypatch.setattr(control_module, limit, PATIENCE)


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
        more = OPTIONS | {"FAKE_CUPTI": FAULTS[kind]}
        env = injected_env(tmp_path, fake=build.fake, library=build.library, **more)
        process = subprocess.Popen(
            [str(program), str(THREADS), str(ROUNDS[kind]), str(FORKS)],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        (socket_path,) = until(lambda: list(tmp_path.glob(f"{process.pid}-*.sock")))
        return process, socket_path.with_suffix(".fdump")

    return run


class Client:
    """Asks by ``ask``, which is given the number of the turn, and counts the answers."""

    def __init__(self, ask: Callable[[Path, int], int]) -> None:
        self._ask = ask
        self.answers = 0

    def __call__(self, process: subprocess.Popen[str], dump: Path) -> None:
        turn = 0
        while process.poll() is None:
            self.answers += self._ask(dump, turn)
            turn += 1


def ask_well(dump: Path, _: int) -> int:
    if control := Control.open(dump):
        with closing(control):
            return (control.status() is not None) + control.flush()
    return 0


def ask_badly(dump: Path, turn: int) -> int:
    with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
        connection.settimeout(0.2)
        connection.connect(str(dump.with_suffix(".sock")))
        connection.sendall(BAD[turn % len(BAD)])
        if turn % 2:
            connection.recv(100)
    return 1


def ask_for_samples(dump: Path, turn: int) -> int:
    if control := Control.open(dump):
        with closing(control):
            reply = control.sample(MODES[turn % len(MODES)])
            return reply is not None and reply.ok
    return 0


@pytest.mark.parametrize("kind", ["thread", "address"])
def test_clients_disturb_nothing(stressed: Stressed, kind: str) -> None:
    process, dump = stressed(kind)
    clients = [Client(ask) for ask in (ask_well, ask_well, ask_badly, ask_badly, ask_for_samples)]
    stdin, process.stdin = process.stdin, None  # which `communicate` would close
    assert stdin
    with ThreadPoolExecutor(6) as pool:
        reading = pool.submit(process.communicate, timeout=10 * PATIENCE)
        asking = [pool.submit(client, process, dump) for client in clients]
        try:
            wait_until(lambda: all(client.answers for client in clients) or reading.done())
        finally:
            stdin.close()
        output, errors = reading.result()
    assert (process.returncode, errors) == (0, "")
    assert all(
        one.result() is None and client.answers for one, client in zip(asking, clients, strict=True)
    )
    said, of = json.loads(output), records(dump)
    lost = of["drop"][of["drop"]["cause"] == SAMPLES_LOST]["count"].sum()
    assert header(dump)["state"] == ENDED and header(dump)["dropped"] == lost
    steady = [number for number, name in of["text"].items() if name == b"steady"]
    assert sum(row["symbol"] in steady for row in of["kernel"]) == said["launches"]
    assert not dump.with_suffix(".sock").exists()
    # Samples came and went; whatever was loaded before or meanwhile is there for them.
    cubins = {int(path.stem.partition("-")[0], 16) for path in dump.parent.glob("cubins/*.cubin")}
    assert len(of["sample"]) or lost
    assert set(of["sample"]["crc"].tolist()) <= cubins


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
    _, errors = process.communicate(timeout=10 * PATIENCE)
    assert (process.returncode, errors) == (0, "")
