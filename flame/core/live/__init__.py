"""Follow recordings while they grow: decode new rows, add them up, take snapshots.

May import: attribution, loading, model, projection, readers, sampling, sass.
"""
