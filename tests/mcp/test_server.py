"""The server, asked by the SDK's own client over a pipe, as an assistant does."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from threading import Event, Timer
from typing import Any

import psutil
import pytest

from flame.core.errors import InputError, UsageError
from flame.mcp import running
from flame.mcp.folders import Folders
from flame.mcp.server import Tools
from tests.support.paths import SAMPLES
from tests.support.waiting import PATIENCE, runs, wait_until

TRACE = "decode.sqlite"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(SAMPLES / "decode_small.sqlite", tmp_path / TRACE)
    return tmp_path


Asked = Callable[[Any], Coroutine[Any, Any, None]]


def served(folder: Path, ask: Asked) -> None:
    """Start the server, let ``ask`` use a client of it, and end both."""
    mcp = pytest.importorskip("mcp")
    command = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "flame", "mcp", str(folder)]
    )

    async def session() -> None:
        async with mcp.Client(command) as client:
            await ask(client)

    asyncio.run(asyncio.wait_for(session(), 4 * PATIENCE))


def text_of(result: Any) -> str:
    return "".join(part.text for part in result.content)


@pytest.mark.deep
def test_an_assistant_finds_its_way(folder: Path) -> None:
    async def ask(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {*tools} == {"list_traces", "summary", "top", "tree", "report", "diff"}
        for tool in tools.values():
            assert tool.description and tool.annotations.read_only_hint

        listed = text_of(await client.call_tool("list_traces", {}))
        assert TRACE in listed
        summary = text_of(await client.call_tool("summary", {"path": TRACE}))
        assert "fused_moe_kernel" in summary

        arguments = {"path": TRACE, "level": "kernel", "rows": 2, "filters": {"device": "0"}}
        top = json.loads(text_of(await client.call_tool("top", arguments)))
        assert [row["level"] for row in top["rows"]] == ["kernel", "kernel"]
        searched = {"path": TRACE, "name": "nccl", "level": "kernel"}
        [row] = json.loads(text_of(await client.call_tool("top", searched)))["rows"]
        assert row["name"].startswith("nccl")

        below = {"path": TRACE, "below": "MLPBlock", "levels": "python,kernel"}
        tree = text_of(await client.call_tool("tree", below))
        assert "MLPBlock.forward" in tree and "worker_busy_loop" not in tree

        report = text_of(await client.call_tool("report", {"path": TRACE}))
        assert report.startswith("### ")
        diff = text_of(await client.call_tool("diff", {"base": TRACE, "new": TRACE}))
        assert diff.startswith("### BASE and NEW are identical")

    served(folder, ask)


@pytest.mark.deep
def test_what_is_asked_wrongly_is_answered_in_a_line(folder: Path) -> None:
    (folder / "damaged.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 100)

    async def ask(client: Any) -> None:
        for name, arguments, says in (
            ("summary", {"path": "/etc/passwd"}, "no such file in"),
            ("summary", {"path": "damaged.sqlite"}, "damaged.sqlite"),
            ("top", {"path": TRACE, "filters": {"output": "/tmp/x"}}, "no filter 'output'"),
            ("top", {"path": TRACE, "metric": "size"}, "size"),
            ("top", {"path": TRACE, "by": "-o/tmp/x"}, "-o/tmp/x"),
            ("tree", {"path": TRACE, "below": "("}, "regular expression"),
            ("report", {"path": TRACE, "sections": "all"}, "--section all"),
            ("diff", {"base": TRACE, "new": "gone"}, "gone: no such file"),
        ):
            result = await client.call_tool(name, arguments)
            assert result.is_error, (name, arguments)
            said = text_of(result)
            assert says in said and "Traceback" not in said
            assert said.count("\n") < 3

    served(folder, ask)


@pytest.mark.deep
def test_many_questions_at_once_are_answered_and_bounded(folder: Path) -> None:
    """Among them those of a trace that is written anew meanwhile, and such as nobody can answer."""
    (folder / "other.folded").write_text("a;b 3\n")

    async def ask(client: Any) -> None:
        async def write() -> None:
            for number in range(20):
                (folder / "new").write_text(f"a;b {number + 1}\n")
                (folder / "new").replace(folder / "other.folded")
                await asyncio.sleep(0.05)

        asked = [
            client.call_tool("top", {"path": TRACE, "rows": 2}),
            *(client.call_tool("top", {"path": "other.folded"}) for _ in range(4)),
            client.call_tool("summary", {"path": "x" * 3_000_000}),
            client.call_tool("top", {"path": TRACE, "name": "x" * 3_000_000}),
            client.call_tool("top", {"path": TRACE, "rows": "many"}),
        ]
        _, *answers = await asyncio.gather(write(), *asked)
        assert [answer.is_error for answer in answers] == 5 * [False] + 3 * [True]
        for answer in answers[1:5]:
            [a, b] = json.loads(text_of(answer))["rows"]
            assert {a["name"], b["name"]} == {"a", "b"}
        assert all(len(text_of(answer)) < running.MOST for answer in answers)

    served(folder, ask)


NO_CHECK = """
import sys
from pathlib import Path
from flame.cli.main import main
from flame.mcp.folders import Folders
Folders.find = lambda self, name: Path(name)
sys.exit(main(["mcp", "."]))
"""
"""A server that takes any path, so that a pipe keeps a command waiting."""


@pytest.mark.deep
@pytest.mark.parametrize("how", ["close", "SIGTERM", "SIGKILL"])
def test_no_command_outlives_its_server(how: str, folder: Path) -> None:
    pytest.importorskip("mcp")
    os.mkfifo(folder / "pipe")
    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    about["clientInfo"] = {"name": "test", "version": "1"}
    asked = {"name": "summary", "arguments": {"path": str(folder / "pipe")}}
    with subprocess.Popen(
        [sys.executable, "-c", NO_CHECK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin and server.stdout

        def send(method: str, **more: object) -> None:
            message = {"jsonrpc": "2.0", "method": method, **more}
            print(json.dumps(message), file=server.stdin, flush=True)

        send("initialize", id=1, params=about)
        server.stdout.readline()
        send("notifications/initialized")
        send("tools/call", id=2, params=asked)
        command = command_of(server.pid)
        if how == "close":
            server.stdin.close()
        else:
            server.send_signal(signal.Signals[how])
        ended = Timer(PATIENCE, server.kill)
        ended.start()
        assert server.wait() == (0 if how == "close" else -signal.Signals[how])
        ended.cancel()
        wait_until(lambda: not runs(command))


def command_of(server: int) -> psutil.Process:
    """The only process of flame that a server has started, once it is there.

    One that is becoming flame has no words for a moment.
    """
    found: list[psutil.Process] = []

    def look() -> bool:
        found[:] = [one for one in psutil.Process(server).children() if "flame" in one.cmdline()]
        return bool(found)

    wait_until(look)
    [command] = found
    return command


@pytest.mark.deep
def test_a_server_that_nobody_can_ask_is_none(folder: Path) -> None:
    pytest.importorskip("mcp")
    command = f"{sys.executable} -m flame mcp . <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    said = b"flame: standard input is closed: an assistant asks there\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", said)


def test_commands_that_are_stopped_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_stopped", Event())
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(running.run_flame, ["info", str(tmp_path / "pipe")])
        wait_until(lambda: running._started)
        running.stop_commands()
        with pytest.raises(InputError, match=r"exit code -9|the server has ended"):
            asked.result(PATIENCE)
    with pytest.raises(InputError, match="the server has ended"):
        running.run_flame(["info", "x"])
    assert not running._started


def collected() -> tuple[Tools, list[list[str]]]:
    commands = list[list[str]]()

    def run(words: Any) -> str:
        commands.append(list(words))
        return ""

    return Tools(Folders([str(SAMPLES)]), run), commands


def test_no_argument_becomes_an_option_of_its_own() -> None:
    tools, commands = collected()
    evil = "--output=/tmp/stolen"
    tools.top("decode_small.sqlite", evil, evil, evil, evil, evil, 10**9, {"kernel": evil})
    tools.tree("decode_small.sqlite", evil, evil, evil, True, {"nvtx": evil})
    tools.report("decode_small.sqlite", evil)
    tools.diff("decode_small.sqlite", "decode_small.sqlite", evil)
    for words in commands:
        assert not any(word.startswith("--output") for word in words)
        assert all(word.startswith("--") or re.fullmatch(r"[a-z]+|/.*", word) for word in words)
    assert "--rows=200" in commands[0]


def test_only_filters_are_filters() -> None:
    tools, commands = collected()
    with pytest.raises(UsageError, match="no filter 'ncu'"):
        tools.top("decode_small.sqlite", filters={"ncu": "/etc/passwd"})
    tools.top("decode_small.sqlite", filters={"hide_framework": "yes", "step": "3-5"})
    assert {"--hide-framework", "--step=3-5"} <= set(commands[-1])


def test_long_answers_are_cut_at_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MOST", 200)
    answer = running.run_flame(["--help"])
    assert len(answer) < 300
    assert answer.endswith("… cut: ask for fewer rows, or a part of it")


def test_an_answer_of_one_line_is_cut_within_it(tmp_path: Path) -> None:
    (tmp_path / "x.folded").write_text(f"a 1\n{'name' * 20_000} 5\n")
    answer = running.run_flame(["top", "--json", str(tmp_path / "x.folded")])
    assert "namename" in answer and len(answer) < running.MOST + 100


def test_only_so_many_commands_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, going_on, most = Counter[str](), Event(), 2

    class Process:
        @staticmethod
        def wait(seconds: float) -> int:
            entered["all"] += 1
            going_on.wait(PATIENCE)
            return 0

    monkeypatch.setattr(running, "start_group", lambda *_: nullcontext(Process))
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(running.run_flame, ["info"]) for _ in range(6)]
        wait_until(lambda: entered["all"] == most)
        assert not running._running.acquire(blocking=False)
        going_on.set()
        assert [one.result() for one in asked] == 6 * [""]
    assert entered["all"] == 6


def test_what_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="Argument list too long"):
        running.run_flame(["info", "x" * 200_000])


@pytest.mark.parametrize("name", ["a\0b", "x" * 20_000], ids=["NUL", "long"])
def test_arguments_that_no_command_takes_are_refused(name: str) -> None:
    tools, commands = collected()
    with pytest.raises(UsageError, match="an argument has a NUL, or more than 10,000"):
        tools.top("decode_small.sqlite", name=name)
    assert commands == []


def test_names_that_no_text_can_hold_are_listed(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "decode_small.sqlite", tmp_path / os.fsdecode(b"caf\xe9.sqlite"))
    listed = Tools(Folders([str(tmp_path)]), lambda _: "").list_traces()
    assert json.dumps(listed).encode()
    assert [one["path"][-13:] for one in listed["traces"]] == [r"af\udce9.sqlite"[-13:]]
    assert listed["more"] is False


def test_a_command_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SECONDS", 0)
    with pytest.raises(InputError, match="not done after 0 s"):
        running.run_flame(["info", str(SAMPLES / "decode_small.sqlite")])


def test_without_the_sdk_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from flame.mcp.server import make_server

    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    with pytest.raises(UsageError, match="pip install 'mcp>="):
        make_server(collected()[0])
