"""Join activities with what their threads were in at the launch: API calls, collectives.

May import attribution and what that may.
"""
