"""Share what all dialogs have: rows to choose from, a line to type into, keys and their help.

May import: no other package.
"""

from flame.tui.toolkit.dialog.base import CURSOR, Dialog
from flame.tui.toolkit.dialog.entry import TextEntry

__all__ = ["CURSOR", "Dialog", "TextEntry"]
