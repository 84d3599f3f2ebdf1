"""List the processes that run or have recorded, and whether they may be watched.

May import: core, record.
"""
