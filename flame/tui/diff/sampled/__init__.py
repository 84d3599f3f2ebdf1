"""Show what PC samples tell of both sides: reasons, instructions, and what has changed of them.

May import: details, sampling, sass, session, shell, toolkit, core.
"""
