"""Keep profiles of large traces in the cache, and open them again from there at once.

A profile is kept as a file of columns, each read when something needs it. What the cache has no
columns for is read from the trace again.

May import: analysis, efficiency, files, model, operators, readers, timeline.
"""
