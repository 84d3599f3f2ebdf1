"""Provide what several readers need: packed files, JSON, numbers, names of frames, converters.

May import: files, model, names.
"""
