"""Hold a module per section: pure functions from a `Scope` to a `Section`.

No section imports another. May import: allocations, host, measures, analysis, gpu_metrics, model,
names, projection, timeline.
"""
