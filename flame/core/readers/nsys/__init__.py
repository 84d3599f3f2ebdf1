"""Read Nsight Systems' SQLite exports, every schema from 2020 to 2026, by probing columns.

Sources of facts: NVIDIA's "SQLite Schema Reference" (Analysis Guide) and the exports themselves.
The schema is the exporter's and changes without notice, and users add and drop columns, so that
nothing here depends on the version.

May import: shared, signs, sqlite, compiled, model, names.
"""
