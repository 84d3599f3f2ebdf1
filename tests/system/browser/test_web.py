"""`flame view --web` in a real browser, and what it says where it cannot serve."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flame.core.model.frames import Kind
from flame.tui.toolkit.colours import RGB, SHADES, colour
from flame.tui.toolkit.themes import DARK, LIGHT
from tests.support.paths import ROOT, SAMPLES
from tests.support.served import Served
from tests.support.waiting import PATIENCE
from tests.system.browser.chromium import Ask, asking

HERE = Path(__file__).parent
SAMPLE = SAMPLES / "decode_small.sqlite"


@pytest.fixture
def servers() -> Iterator[list[Served]]:
    """Servers to be ended with the test."""
    started: list[Served] = []
    yield started
    for server in started:
        server.close()


@pytest.fixture
def page(packages: Path, tmp_path: Path) -> Iterator[Ask]:
    """A page of the browser; see app.mjs for its steps and what comes back."""
    with asking(HERE / "app.mjs", packages, tmp_path / "stderr") as ask:
        yield ask


def step(page: Ask, **what: str) -> tuple[dict[str, int], list[str]]:
    """Pixels by colour, and the URLs loaded, after a step."""
    answer = page(json.dumps(what))
    return answer["colours"], answer["requests"]


def css(rgb: RGB) -> str:
    return "#{:02x}{:02x}{:02x}".format(*rgb)


def pixels(seen: dict[str, int], kind: Kind) -> int:
    return sum(seen.get(css(colour(kind, shade)), 0) for shade in range(SHADES))


def step_until(
    page: Ask, true: Callable[[dict[str, int]], object], **what: str
) -> tuple[dict[str, int], list[str]]:
    """The same once what is seen is as it has to become: until then it may stand still, too."""
    answer = step(page, **what)
    due = time.monotonic() + PATIENCE
    while not true(answer[0]) and time.monotonic() < due:
        answer = step(page)
    return answer


def opened(page: Ask, url: str) -> tuple[dict[str, int], list[str]]:
    """The page at ``url`` once the trace is loaded."""
    return step_until(page, lambda seen: pixels(seen, Kind.NVTX), open=url)


@pytest.mark.deep
def test_the_page_shows_the_app_of_the_options_and_takes_keys(
    page: Ask, servers: list[Served]
) -> None:
    servers.append(Served(str(SAMPLE), "--levels", "nvtx", "--rename", "a b=it's; $HOME"))
    server = servers[0]
    seen, requests = opened(page, server.url)
    assert pixels(seen, Kind.NVTX) > 20_000
    assert not pixels(seen, Kind.PYTHON)  # how busy the GPUs were is drawn as kernels are
    assert {seen.get(DARK.background or ""), seen.get(LIGHT.background or "")} > {None}
    assert requests and all(url.startswith(server.url) for url in requests)
    assert any(url.endswith(".ttf") for url in requests)

    down, _ = step_until(page, lambda now: now != seen, press="ArrowDown")
    assert down != seen
    ground = LIGHT.background or ""
    light, _ = step_until(page, lambda now: now.get(ground), press="t")
    assert light.get(ground, 0) > 50_000
    assert page(json.dumps({"press": "q", "wait": "body.-closed"}))["closed"]
    assert server.interrupt() in (0, 130)


@pytest.mark.deep
def test_ctrl_c_ends_the_server_and_the_apps_of_open_pages(
    page: Ask, servers: list[Served]
) -> None:
    servers.append(Served(str(SAMPLE)))
    step(page, open=servers[0].url)
    assert servers[0].interrupt() in (0, 130)
    assert page("{}")["closed"]


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_only_who_knows_the_address_sees_anything(servers: list[Served]) -> None:
    servers.append(Served(str(SAMPLE)))
    server = servers[0]
    root = f"http://127.0.0.1:{server.port}"
    assert status(server.url) == 200
    for path in ("/", "/ws", "/static/js/textual.js", "/guess/", "/guess/ws"):
        assert status(root + path) == 404
    # On all addresses of this machine but one, nobody listens.
    with socket.socket() as other:
        assert other.connect_ex(("127.0.0.2", server.port)) != 0


def complain(*words: str, **environment: str) -> str:
    """The one line that flame says, and exit code 2."""
    command = [sys.executable, "-m", "flame", "view", str(SAMPLE), "--web", *words]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "FLAME_CONFIG": os.devnull, **environment},
    )
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    return line


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = complain("--port", port)
    assert said == f"flame: --port {port}: address already in use; --port 0 takes a free one"


@pytest.mark.parametrize("port", ["65536", "x", "-1", "1.5"])
def test_what_is_no_port(port: str) -> None:
    assert "port" in complain(f"--port={port}")


def test_textual_serve_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "textual_serve").mkdir()
    source = "raise ModuleNotFoundError(name='textual_serve')"
    (tmp_path / "textual_serve" / "__init__.py").write_text(source)
    said = complain(PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert said.startswith("flame: --web needs textual_serve, which is not installed: pip install")


def test_wrong_keys_are_told_before_anything_is_served(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[keys]\nnothing = "x"')
    assert "unknown command 'nothing'" in complain(FLAME_CONFIG=str(path))


def test_printing_and_serving_exclude_each_other() -> None:
    assert complain("--print") == "flame: --web and --print exclude each other"
