"""Read files of ready-made stacks: folded, speedscope, Triton Proton.

May import readers.shared and model.
"""
