"""Hold what is shown, selected, searched and undone; draws nothing.

May import: toolkit, core, options.
"""
