"""Secrets in command lines, masked by the library as Python masks them."""

from __future__ import annotations

import os
import random
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from flame.core.names.secrets import mask_secrets
from inject import build
from tests.inject.conftest import SANITIZERS, WATCHED
from tests.inject.scenes import Bench, program
from tests.support.secrets import CASES
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import meta

SECRET = ["--token", "very-secret", "HF_TOKEN=very-secret", "https://me:very-secret@host/"]
# What rules are about, to be put together in any order.
PARTS = [
    *("token", "TOKEN", "api", "_", "-", "--", "key", "KEY", "Key", "password", "secret", "pad"),
    *("=", "==", ":", "://", "@", "/", "?", "&", " ", "\t", "'", '"', "]", "}", ",", ".", "x", "7"),
    *("Bearer", "Authorization", "hf_", "sk-", "abcdefghijklmnop1", "é", "\udcff", "\n", "***"),
]


@pytest.fixture
def bench(buildable: None, tmp_path: Path) -> Bench:
    return Bench(program(), tmp_path / "dumps")


@pytest.fixture(params=["release", "address"])
def mask(
    request: pytest.FixtureRequest, compiled: Callable[..., Path]
) -> Callable[[Sequence[Sequence[str]]], list[list[str]]]:
    """Masks command lines by the code of the library."""
    flags = (*WATCHED, *SANITIZERS["address"]) if request.param == "address" else ("-O2",)
    masker = compiled("mask_secrets.cpp", str(build.HERE / "process" / "secrets.cpp"), *flags)

    def run(lines: Sequence[Sequence[str]]) -> list[list[str]]:
        images = [b"".join(os.fsencode(word) + b"\0" for word in line) for line in lines]
        data = b"".join(struct.pack("<I", len(image)) + image for image in images)
        done = subprocess.run([masker], input=data, capture_output=True, timeout=PATIENCE)
        assert (done.returncode, done.stderr) == (0, b"")
        return list(lines_of(done.stdout))

    return run


def lines_of(data: bytes) -> Iterator[list[str]]:
    at = 0
    while at < len(data):
        end = at + 4 + struct.unpack_from("<I", data, at)[0]
        yield [os.fsdecode(word) for word in data[at + 4 : end].split(b"\0")[:-1]]
        at = end


def test_words(mask: Callable[..., list[list[str]]]) -> None:
    assert mask([words for words, _ in CASES]) == [masked for _, masked in CASES]


def test_any_words_are_masked_as_by_python(mask: Callable[..., list[list[str]]]) -> None:
    chance = random.Random(7)
    lines = [
        ["".join(chance.choices(PARTS, k=chance.randrange(8))) for _ in range(1 + number % 4)]
        for number in range(8_000)
    ]
    expected = [list(mask_secrets(line)) for line in lines]
    assert [at for at in zip(lines, mask(lines), expected, strict=True) if at[1] != at[2]] == []


def test_a_dump_holds_no_secret_of_the_command_line(bench: Bench) -> None:
    command = [str(bench.program), "nothing", *SECRET]
    subprocess.run(command, env=bench.env(), check=True, timeout=PATIENCE)
    assert b"very-secret" not in bench.dump().read_bytes()
    line = "nothing --token *** HF_TOKEN=*** https://me:***@host/"
    assert meta(bench.dump())["command"] == [f"{bench.program} {line}"]


def test_it_holds_them_where_that_is_wanted(bench: Bench) -> None:
    command = [str(bench.program), "nothing", *SECRET]
    env = bench.env(FLAME_KEEP_SECRETS=1)
    subprocess.run(command, env=env, check=True, timeout=PATIENCE)
    assert meta(bench.dump())["command"] == [" ".join(command)]
