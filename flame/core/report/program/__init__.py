"""Tell what the program did: iterations, phases, layers, experts.

May import: host, measures, analysis, compiled, efficiency, model, names, projection, timeline.
"""
