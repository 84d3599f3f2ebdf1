"""Give PC samples to kernels and launches, from recordings or from Nsight Compute.

May import readers.ncu, attribution, sass and model.
"""
