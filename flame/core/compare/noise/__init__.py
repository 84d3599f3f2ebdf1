"""Tell for pictures and tables which frames have changed beyond noise.

May import: over_ranks.
"""
