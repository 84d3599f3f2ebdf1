"""Name the operators of which more than shapes is kept."""

from __future__ import annotations

from flame.core.names.products import PRODUCTS
from flame.core.operators.formulas import OPERATORS

TYPED = OPERATORS | PRODUCTS
"""Operators whose work is counted: their own, or for the report that of their parts."""
