"""Traces by https from a real server, whose certificate is of an authority of its own."""

from __future__ import annotations

import json
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from tests.support.file_server import FileServer, serving
from tests.support.waiting import PATIENCE, wait_until, wait_until_sleeping
from tests.system.servers.conftest import TRACE, Machine

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make certificates"),
]

NAME = "subjectAltName=IP:127.0.0.1"


@pytest.fixture(scope="module")
def certificate(machine_folder: Path) -> Path:
    """A certificate for this machine with its key, which is its own authority."""
    path = machine_folder / "server.pem"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=flame -addext {NAME}"
    words = [*command.split(), "-keyout", str(path), "-out", f"{path}.crt"]
    subprocess.run(words, check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@pytest.fixture(scope="module")
def server(certificate: Path) -> Iterator[FileServer]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with serving(tls) as one:
        yield one


@pytest.fixture(scope="module")
def machine(machine_folder: Path, certificate: Path) -> Iterator[Machine]:
    with Machine(machine_folder, {"SSL_CERT_FILE": f"{certificate}.crt"}).commands() as one:
        yield one


def test_it_is_fetched_whole_and_once(server: FileServer, machine: Machine) -> None:
    server.files["/run.folded"] = TRACE, {"ETag": '"1"'}
    for _ in range(2):
        told = machine.run("info", server.url("/run.folded"), "--json")
        assert json.loads(told.out)["measures"][0]["total"] == 15
    assert server.asked == ["HEAD /run.folded", "GET /run.folded", "HEAD /run.folded"]
    assert not any("Range" in headers for headers in server.headers)
    assert len(machine.fetched()) == 1


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({"status": "403"}, "the server answers 403 Forbidden"),
        ({"status": "404"}, "the server answers 404 Not Found"),
        ({"status": "500"}, "the server answers 500 Internal Server Error"),
        ({"Content-Length": "9999"}, "cannot be fetched: "),
        ({"status": "302", "Location": "file:///etc/passwd"}, "cannot be fetched: "),
        ({"status": "302", "Location": "/again"}, "cannot be fetched: "),
    ],
)
def test_what_fails_is_a_line_and_leaves_nothing(
    headers: dict[str, str], says: str, server: FileServer, machine: Machine
) -> None:
    before = machine.fetched()
    server.files["/again"] = TRACE, {"ETag": "1", **headers}
    told = machine.run("info", server.url("/again?signature=secret")).complaint()
    server.files["/again?signature=secret"] = server.files["/again"]
    told += machine.run("info", server.url("/again?signature=secret")).complaint()
    assert says in told and "secret" not in told and "passwd" not in told.partition(": ")[2][:40]
    assert machine.fetched() == before


@pytest.mark.parametrize("header", ["Location", "URI"])
def test_nothing_is_asked_of_a_server_without_encryption(
    header: str, server: FileServer, machine: Machine
) -> None:
    with serving() as plain:
        plain.files["/a"] = TRACE, {}
        server.files["/moved"] = b"", {"status": "302", header: plain.url("/a")}
        told = machine.run("info", server.url("/moved")).complaint()
        assert "sends on to http://, which is not safe" in told
        assert plain.asked == []


def test_what_has_another_size_than_was_told_is_refused(
    server: FileServer, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Growing(dict[str, tuple[bytes, dict[str, str]]]):
        """A file that has grown each time that it is looked at."""

        def get(self, path: str, default: object = None) -> tuple[bytes, dict[str, str]]:
            grown = TRACE * (1 + len(server.asked))
            return grown, {"ETag": "1"}

    before = machine.fetched()
    monkeypatch.setattr(server, "files", Growing())
    assert "came: try again" in machine.run("info", server.url("/grows")).complaint()
    assert machine.fetched() == before


def test_a_certificate_of_nobody_known_is_refused(server: FileServer, tmp_path: Path) -> None:
    with Machine(tmp_path, {}).commands() as stranger:
        told = stranger.run("info", server.url("/run.folded")).complaint()
        assert "certificate" in told.lower()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_a_fetch_from_a_server_that_falls_silent(
    number: signal.Signals, server: FileServer, machine: Machine
) -> None:
    before = machine.fetched()
    server.files["/slow"] = TRACE * 100_000, {"ETag": "1"}
    server.stalled["/slow"] = Event()
    command = [sys.executable, "-m", "flame", "info", server.url("/slow")]
    with subprocess.Popen(command, env=machine.environment, stderr=subprocess.PIPE) as one:
        wait_until(lambda: machine.fetched() != before)
        wait_until_sleeping(one.pid)
        one.send_signal(number)
        _, err = one.communicate(timeout=PATIENCE)
    server.stalled["/slow"].set()
    assert (one.returncode, err) == (130 if number == signal.SIGINT else -number, b"")
    assert machine.fetched() == before
