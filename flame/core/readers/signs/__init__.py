"""Recognize the formats of files by how they begin, without what reads them.

May import: no other package.
"""
