"""Follow recordings while they grow: decode new rows, add them up, take snapshots.

May import loading and what is below it.
"""
