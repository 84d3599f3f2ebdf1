"""Themes in the app and on real terminals: what is sent, and what is told apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import get_type_hints

import pytest
from rich.color import ColorType
from rich.style import Style
from textual.color import Color

from flame.config import Config
from flame.core.options import LoadOptions
from flame.core.selection import Selection
from flame.tui.app import FlameApp
from flame.tui.lines import Lines
from flame.tui.palette import NoColours, Palette, SixteenColours
from flame.tui.themes import CONTRAST, DARK, LIGHT, NAMES, SIXTEEN, cycle
from tests.tui.conftest import User, open_app
from tests.tui.terminals import Terminal, start
from tests.tui.test_palette import contrast
