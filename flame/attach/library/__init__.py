"""Talk to the injection library in a process, or load it into one.

May import: discover, core, record.
"""
