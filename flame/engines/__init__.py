"""Read ranks side by side: in processes here, or on a Dask cluster. Only here is Dask imported.

May import: console, core.
"""
