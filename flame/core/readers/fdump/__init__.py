"""Read dumps of flame's injection library (``*.fdump``; the format is ``inject/dump/dump.h``).

May import: shared, signs, model, names, sass.
"""
