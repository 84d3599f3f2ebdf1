"""Read Nsight Compute reports, and their source page as CSV: PC samples per instruction.

May import: shared, signs, model, names.
"""
