"""Recording as a command: the library, its double as the driver, a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import buildable as buildable
from tests.cli.conftest import fake as fake
from tests.cli.conftest import flame as flame
from tests.cli.conftest import folder as folder
from tests.cli.conftest import leaks_told as leaks_told
from tests.cli.conftest import library as library
from tests.cli.conftest import record as record
from tests.cli.conftest import recorder as recorder
from tests.support import tiers


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Thin out the quick tier: what is recorded is a process of its own."""
    here = Path(__file__).parent
    tiers.thin_out(item for item in items if here in item.path.parents)
