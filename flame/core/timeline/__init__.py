"""Answer what ran when: lanes of intervals, and their share of each cell of the screen.

May import: attribution, compiled, gpu_metrics, model, names, projection.
"""
