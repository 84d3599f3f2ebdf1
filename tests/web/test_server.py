"""What the server of `flame view --web` answers, and to whom; the page itself: tests/system."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tomllib
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import psutil
import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, WSServerHandshakeError

from flame.web.app_process import LARGEST
from flame.web.server import MOST_PAGES
from tests.support.paths import ROOT, SAMPLES
from tests.support.served import Served
from tests.support.tiers import deep_except
from tests.support.waiting import PATIENCE, runs, wait_until

pytestmark = pytest.mark.deep

SAMPLE = SAMPLES / "decode_small.sqlite"
LOOPBACK = "127.0.0.1"
QUIET = 1.0
MESSAGES = [
    "no JSON",
    '["resize", {"width": "9"}]',
    "{}",
    "[]",
    "[[]]",
    '["stdin", 1]',
    '["resize", null]',
]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """One server for the tests that leave it as it was."""
    server = Served(str(SAMPLE))
    yield server
    server.close()


@asynccontextmanager
async def page(served: Served, **query: int) -> AsyncIterator[ClientWebSocketResponse]:
    """The connection of a page, once its app has begun to draw."""
    async with (
        ClientSession() as session,
        session.ws_connect(
            f"{served.url}ws", params=query, origin=f"http://{LOOPBACK}:{served.port}"
        ) as connection,
    ):
        await drawn(connection)
        yield connection


async def drawn(connection: ClientWebSocketResponse) -> bytes:
    """The next bytes for the terminal."""
    async with asyncio.timeout(PATIENCE):
        while (message := await connection.receive()).type != WSMsgType.BINARY:
            assert message.type == WSMsgType.TEXT, message
    drawn: bytes = message.data
    return drawn


async def settled(connection: ClientWebSocketResponse) -> None:
    """Return when the trace is shown and nothing more is drawn: such an app notices nothing."""
    shown = b""
    while b"forward" not in shown:
        shown += await drawn(connection)
    with suppress(TimeoutError):
        while True:
            await connection.receive(timeout=QUIET)


async def ended(connection: ClientWebSocketResponse) -> None:
    """Return when the server has closed the connection."""
    async with asyncio.timeout(PATIENCE):
        while (await connection.receive()).type not in (WSMsgType.CLOSE, WSMsgType.CLOSED):
            pass


async def status(served: Served, path: str = "", **headers: str) -> int:
    async with (
        ClientSession() as session,
        session.get(f"{served.url}{path}", headers=headers) as it,
    ):
        return it.status


def apps(served: Served) -> list[psutil.Process]:
    """The processes of its pages."""
    children: list[psutil.Process] = psutil.Process(served.process.pid).children()
    return children


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:80", "", "localhost@evil.example", "[::2]"]
)
async def test_another_host_is_refused(served: Served, host: str) -> None:
    # What a page has whose own name has come to resolve to 127.0.0.1.
    assert await status(served, Host=host) == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:9999", "127.0.0.1:1", "[::1]:8000"])
async def test_this_machine_under_any_port_is_served(served: Served, host: str) -> None:
    assert await status(served, Host=host) == 200
    assert await status(served, Host=host, Origin=f"http://{host}") == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://["]
)
async def test_a_page_of_another_origin_is_refused(served: Served, origin: str) -> None:
    assert await status(served, Origin=origin) == 403
    async with ClientSession() as session:
        with pytest.raises(WSServerHandshakeError) as refused:
            await session.ws_connect(f"{served.url}ws", origin=origin)
    assert refused.value.status == 403
    assert not apps(served)


async def test_a_connection_without_an_origin_is_refused(served: Served) -> None:
    async with ClientSession() as session:
        with pytest.raises(WSServerHandshakeError) as refused:
            await session.ws_connect(f"{served.url}ws")
    assert refused.value.status == 403
    assert not apps(served)


@pytest.mark.parametrize("path", ["", "static/js/textual.js", "ws", "guess", "../"])
async def test_every_answer_keeps_the_address_secret(served: Served, path: str) -> None:
    async with ClientSession() as session, session.get(f"{served.url}{path}") as answer:
        headers = answer.headers
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")


async def test_the_page_runs_its_own_script_only(served: Served) -> None:
    nonces = set()
    for _ in range(2):
        async with ClientSession() as session, session.get(served.url) as answer:
            policy, text = answer.headers["Content-Security-Policy"], await answer.text()
        _, _, rest = policy.partition("'nonce-")
        nonce = rest.partition("'")[0]
        assert f'<script nonce="{nonce}">' in text
        assert "script-src 'self' 'nonce-" in policy
        nonces.add(nonce)
    assert len(nonces) == 2


@pytest.mark.parametrize("message", deep_except(MESSAGES[:2], MESSAGES))
async def test_a_message_that_no_page_of_flame_sends_ends_it(served: Served, message: str) -> None:
    async with page(served) as connection:
        await connection.send_str(message)
        await ended(connection)
    wait_until(lambda: not apps(served))


async def test_what_is_typed_arrives_whatever_it_is(served: Served) -> None:
    async with page(served) as connection:
        await connection.send_str(json.dumps(["stdin", "\ud800"]))
        await connection.send_str(json.dumps(["resize", {"width": 10**12, "height": -5}]))
        await connection.send_str(json.dumps(["ping", 7]))
        async with asyncio.timeout(PATIENCE):
            while (message := await connection.receive()).type != WSMsgType.TEXT:
                assert message.type == WSMsgType.BINARY
        assert json.loads(message.data) == ["pong", 7]
    wait_until(lambda: not apps(served))


async def test_a_page_may_not_ask_for_a_terminal_of_any_size(served: Served) -> None:
    async with page(served, width=9999, height=9999):
        [app] = apps(served)
        size = app.environ()
        assert (int(size["COLUMNS"]), int(size["ROWS"])) == LARGEST
    wait_until(lambda: not apps(served))


@pytest.mark.deep
async def test_pages_are_bounded() -> None:
    served = Served(str(SAMPLE))
    origin = f"http://{LOOPBACK}:{served.port}"
    try:
        async with ClientSession() as session:
            opened = [
                await session.ws_connect(f"{served.url}ws", origin=origin)
                for _ in range(MOST_PAGES)
            ]
            assert await status(served) == 503
            with pytest.raises(WSServerHandshakeError) as refused:
                await session.ws_connect(f"{served.url}ws", origin=origin)
            assert refused.value.status == 503
            await opened[0].close()
            async with asyncio.timeout(PATIENCE):
                while await status(served) == 503:
                    await asyncio.sleep(0.05)
            for connection in opened:
                await connection.close()
    finally:
        served.close()


async def test_apps_end_with_a_server_that_is_killed() -> None:
    served = Served(str(SAMPLE))
    try:
        async with page(served) as connection:
            [app] = apps(served)
            await settled(connection)
            served.process.kill()
            served.process.wait(PATIENCE)
            wait_until(lambda: not runs(app))
    finally:
        served.close()


OTHER_USER = """
import os, sys, urllib.error, urllib.request
"".encode("idna")  # Imports what the other user may not read.
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
for pid in sys.argv[2:]:
    for name in ("cmdline", "environ", "fd/1", "stat"):
        try:
            print(open(f"/proc/{pid}/{name}", "rb").read())
        except OSError as error:
            print(error)
try:
    urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/")
except urllib.error.HTTPError as error:
    print(error.code, error.read(), error.headers.items())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be two users")
async def test_another_user_does_not_learn_the_address(served: Served) -> None:
    secret = served.url.rstrip("/").rpartition("/")[2]
    async with page(served):
        pids = [str(served.process.pid), *(str(app.pid) for app in apps(served))]
        command = [sys.executable, "-c", OTHER_USER, str(served.port), *pids]
        spying = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
        found, _ = await spying.communicate()
    assert spying.returncode == 0
    assert b"flame" in found and b"404" in found
    assert secret.encode() not in found
    wait_until(lambda: not apps(served))


def test_the_package_that_is_advised_is_the_one_that_works() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [needed] = project["optional-dependencies"]["web"]
    assert f"pip install {needed}" in (ROOT / "flame" / "cli" / "view.py").read_text()
