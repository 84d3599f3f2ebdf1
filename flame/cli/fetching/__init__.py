"""Bring here what a command is to read that is no file: standard input, pipes, remote traces.

May import: console, core, options.
"""
