"""Find when threads were held up, and lay that out over time.

May import timeline and what that may.
"""
