"""Measure how near GPUs are to their peaks: work of operators, time at peak, verdicts per frame."""
