"""What the app is run with, where it is not run."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import pytest

from flame.cli.main import main
from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.options.state import AppState

Ran = tuple[list[str], LoadOptions, Selection, AppState | None]


@pytest.fixture(scope="module")
def opened() -> Callable[[str], Ran]:
    """What the app is run with by a line typed into a shell."""

    def type_in(line: str) -> Ran:
        program, *words = shlex.split(line)
        assert program == "flame"
        seen: list[Ran] = []

        def run(inputs: Inputs, options: Any, select: Any, state: Any, *more: object) -> int:
            seen.append(([str(path) for path in inputs.paths], options, select(), state))
            return 0

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("flame.tui.main.app.run", run)
            patch.setattr("flame.cli.view.is_on_terminal", lambda: True)
            patch.setenv("FLAME_CONFIG", "/dev/null")
            assert main(words) == 0
        return seen[0]

    return type_in
