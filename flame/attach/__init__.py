"""Find running processes and watch them.

May import record, console, exporters, options and core.
"""
