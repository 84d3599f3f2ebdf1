"""Find running processes and watch them.

May import: console, core, record.
"""
