"""Read PyTorch profiler (Kineto) traces: Chrome trace JSON, plain or packed, from 2021 on.

May import: shared, model, names, operators.
"""
