"""Join activities with what their threads were in at the launch: API calls, collectives.

May import: compiled, model.
"""
