"""List the processes that run or have recorded, and whether they may be watched.

May import record and core.
"""
