"""Provide what several readers need: gzip, JSON, numbers, names of frames, converters.

May import model.
"""
