"""Watch a process by py-spy where the library is not loaded.

May import: discover, core, record.
"""
