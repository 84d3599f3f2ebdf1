"""Programs to attach to, which are recorded to a folder of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attach.trees import tree as tree
from tests.attach.trees import users_folder as users_folder
from tests.inject.conftest import injected_env as injected_env

Env = dict[str, str]


@pytest.fixture
def env(injected_env: Callable[..., Env], users_folder: Path) -> Env:
    """That of a process which is recorded to the user's folder."""
    return injected_env(users_folder)
