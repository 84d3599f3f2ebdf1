"""Run ``flame diff``: which sides are compared, and what is written or shown of them."""

from flame.cli.diff.command import add_options

__all__ = ["add_options"]
