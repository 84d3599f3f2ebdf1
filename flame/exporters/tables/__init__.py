"""Make tables of what was measured: of frames, nodes and activities; write and hand them over.

May import: core.
"""
