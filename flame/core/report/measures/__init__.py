"""Measure what several sections and rules need: columns, each worked out from a `Scope`.

May import: analysis, compiled, model, projection, timeline.
"""
