"""Servers that end with their test."""

from __future__ import annotations

from tests.support.garbage import leaks_told as leaks_told
