"""Keep what is needed of a base to compare with it later: no times of day, no environment.

May import: model, names, projection, readers, report.
"""
