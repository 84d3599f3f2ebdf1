"""Bring traces here that are no files of this machine: standard input, pipes, remote objects.

May import: files.
"""
