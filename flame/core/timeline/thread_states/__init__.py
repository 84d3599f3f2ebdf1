"""Find when threads were held up, and lay that out over time.

May import: gpu_metrics, model, names.
"""
