"""Answer an assistant's questions about traces, over the Model Context Protocol, read-only.

May import: core, exporters.
"""
