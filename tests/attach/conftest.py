"""What the tests of attaching share: the library and its double, processes to look at."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.inject.conftest import buildable as buildable
from tests.inject.conftest import fake as fake
from tests.inject.conftest import injected_env as injected_env
from tests.inject.conftest import library as library
from tests.support.garbage import leaks_told as leaks_told
from tests.support.waiting import wait_for_exec
from tests.support.waiting import wait_until as wait_until

NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts programs, which are killed in the end; options are those of `subprocess.Popen`."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*words: str, **options: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(words, **options)
        started.append(process)
        wait_for_exec(process)
        return process

    yield begin
    for one in started:
        one.kill()
        one.communicate()


def as_nobody(find: Callable[[], str], user: int = NOBODY) -> str:
    """What a process of another user finds, with this one's memory and none of its rights."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            os.write(writing, find().encode())
        except BaseException as error:
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    return found
