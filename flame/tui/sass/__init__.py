"""Show the instructions of a kernel with their samples.

May import details, dialogs, widgets and sampling.
"""
