"""Put what was measured of a trace into a few words, for every surface alike.

May import: model, projection.
"""
