"""Split what a group of activities weighs into parts: by PC samples, by waiting for other ranks.

May import: compiled, model.
"""
