"""Measure how near GPUs are to their peaks: work of operators, time at peak, verdicts per frame.

May import: analysis, attribution, compiled, gpu_metrics, model, names, operators, projection.
"""
