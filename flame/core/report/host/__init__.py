"""Measure what threads of the host did: calls, the GIL, garbage collection, the operating system.

May import: analysis, attribution, model, projection, timeline.
"""
