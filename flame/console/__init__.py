"""Write to a plain terminal: safe text, progress, tables of information, the printed view.

May import: core.
"""
