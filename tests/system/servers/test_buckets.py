"""Traces in buckets: of S3 as moto serves it, of Google's storage as its emulator does."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE, wait_until
from tests.system.servers.conftest import TRACE, Machine

pytestmark = pytest.mark.deep

LARGE = {"s3": 10_000, "gs": (100 << 20) + 1}
"""Bytes that are more than what is fetched at once: 1,000 by the environment, and gcsfs's own."""

CONTENT = {"s3": "GET /traces/", "gs": "alt=media"}
"""What a request for content, whole or in part, is told by."""


class Bucket:
    """A server with a bucket: ``requests`` says what it was asked for."""

    def __init__(self, scheme: str, address: str, log: Path) -> None:
        self.scheme, self.address, self._log = scheme, address, log

    def send(self, method: str, path: str, data: bytes = b"", kind: str = "text/plain") -> None:
        """Send a request as other programs do that fill buckets."""
        request = Request(self.address + path, data, {"Content-Type": kind}, method=method)
        with urlopen(request, timeout=PATIENCE):
            pass

    def put(self, name: str, data: bytes) -> None:
        """Have the bucket hold ``data`` under that name, as whoever owns it does."""
        if self.scheme == "gs":
            self.send("POST", f"/upload/storage/v1/b/traces/o?uploadType=media&name={name}", data)
            return
        self.send("POST", "/moto-api/reset")  # It lets nobody write over an object unsigned.
        self.send("PUT", "/traces")
        self.send("PUT", f"/traces/{name}", data)

    def requests(self) -> list[str]:
        """Lines of what it was asked for, and of which range."""
        return self._log.read_text().splitlines()

    def contents(self, before: int) -> int:
        """Count the requests for content after so many lines; none of them was for a range."""
        found = [line for line in self.requests()[before:] if CONTENT[self.scheme] in line]
        assert not any("bytes=" in line for line in found)
        return len(found)


@contextmanager
def process(command: list[str], log: Path) -> Iterator[None]:
    """Run a server, whose output is the file ``log``, while the block does."""
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, cwd=ROOT) as one:
        try:
            yield
        finally:
            one.kill()


@pytest.fixture(scope="module")
def s3(machine_folder: Path) -> Iterator[Bucket]:
    if not (find_spec("moto") and find_spec("s3fs")):
        pytest.skip("no moto and s3fs: make test-deep installs them where they can be had")
    log = machine_folder / "s3.log"
    with process([sys.executable, "-m", "tests.system.servers.s3_server"], log):
        wait_until(lambda: log.read_text().endswith("\n"))
        yield Bucket("s3", f"http://127.0.0.1:{log.read_text().split()[0]}", log)


@pytest.fixture(scope="module")
def gs(machine_folder: Path) -> Iterator[Bucket]:
    if not (find_spec("gcp_storage_emulator") and find_spec("gcsfs")):
        pytest.skip("no emulator and gcsfs: make test-deep installs them where they can be had")
    log = machine_folder / "gs.log"
    with socket.socket() as kept:
        # Nobody else is given the port meanwhile; who names it, and shares it, may listen there.
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        port = kept.getsockname()[1]
        words = f"start --host 127.0.0.1 --port {port} --in-memory --default-bucket traces"
        command = [sys.executable, "-m", "gcp_storage_emulator", *words.split()]
        with process(command, log):
            yield _started(Bucket("gs", f"http://127.0.0.1:{port}", log), port)


def _started(bucket: Bucket, port: int) -> Bucket:
    """Wait until there is somebody who listens on its port."""

    def is_there() -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", port)) == 0

    wait_until(is_there)
    return bucket


@pytest.fixture(scope="module", params=["s3", "gs"])
def bucket(request: pytest.FixtureRequest) -> Bucket:
    found: Bucket = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def machine(bucket: Bucket, machine_folder: Path) -> Iterator[Machine]:
    """A machine with the credentials that each ecosystem takes from the environment."""
    environment = {
        "AWS_ENDPOINT_URL": bucket.address,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "FSSPEC_S3": '{"default_block_size": 1000}',
        "STORAGE_EMULATOR_HOST": bucket.address,
        "FSSPEC_GCS_TOKEN": "anon",
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # asks by gRPC, which no emulator answers
    }
    folder = machine_folder / bucket.scheme
    folder.mkdir()
    with Machine(folder, environment).commands() as one:
        yield one


def test_it_is_fetched_whole_and_once(bucket: Bucket, machine: Machine) -> None:
    url = f"{bucket.scheme}://traces/run/a.folded"
    bucket.put("run/a.folded", TRACE)
    before = len(bucket.requests())
    for _ in range(2):
        told = machine.run("info", url, "--json")
        assert told.code == 0, told.err
        assert json.loads(told.out)["measures"][0]["total"] == 15
        assert json.loads(told.out)["path"] == url
    assert bucket.contents(before) == 1
    assert len(machine.fetched()) == 1


def test_a_large_one_is_not_asked_for_in_parts(bucket: Bucket, machine: Machine) -> None:
    bucket.put("run/large", bytes(LARGE[bucket.scheme]))
    before = len(bucket.requests())
    told = machine.run("info", f"{bucket.scheme}://traces/run/large").complaint()
    assert "not a trace" in told
    assert bucket.contents(before) == 1


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("traces/run/none.folded", "there is no such file"),
        ("nobody/a.folded", ""),
        ("traces/run", "is a folder: name one trace in it"),
        ("traces", "is a folder: name one trace in it"),
    ],
)
def test_what_fails_is_a_line(path: str, says: str, bucket: Bucket, machine: Machine) -> None:
    bucket.put("run/a.folded", TRACE)
    before = machine.fetched()
    told = machine.run("info", f"{bucket.scheme}://{path}").complaint()
    assert f"{bucket.scheme}://{path}: " in told and says in told
    assert machine.fetched() == before


def test_an_object_that_was_replaced_is_fetched_anew(bucket: Bucket, machine: Machine) -> None:
    name = "run/b.folded"
    for number in (1, 2):
        bucket.put(name, b"main %d\n" % number)
        told = machine.run("info", f"{bucket.scheme}://traces/{name}", "--json")
        assert json.loads(told.out)["measures"][0]["total"] == number


def test_a_bucket_that_refuses_is_told(s3: Bucket, tmp_path: Path) -> None:
    """Without credentials anywhere, and nobody asked for any."""
    environment = {"AWS_ENDPOINT_URL": s3.address, "AWS_EC2_METADATA_DISABLED": "true"}
    with Machine(tmp_path, environment).commands() as stranger:
        told = stranger.run("info", "s3://traces/run/a.folded").complaint()
    assert "redentials" in told
    assert stranger.fetched() == []
