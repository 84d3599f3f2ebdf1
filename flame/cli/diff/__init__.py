"""Run ``flame diff``: which sides are compared, and what is written or shown of them.

May import: console, core, options, reporting, tui.
"""

from flame.cli.diff.command import add_options

__all__ = ["add_options"]
