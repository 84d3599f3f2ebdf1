"""Read files of ready-made stacks: folded, speedscope, pprof, Triton Proton.

May import: shared, model, names.
"""
