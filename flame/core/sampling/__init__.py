"""Give PC samples to kernels and launches, and pair the instructions of recompiled ones.

May import: attribution, model, names, readers.
"""
