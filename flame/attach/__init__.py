"""Find running processes and watch them.

May import record, console and core.
"""
