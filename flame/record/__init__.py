"""Run a command with the injection library and tell what was recorded (``flame record``).

May import: console, core.
"""
