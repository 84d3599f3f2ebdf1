"""Read files of ready-made stacks: folded, speedscope, pprof, Triton Proton.

May import readers.shared and model.
"""
