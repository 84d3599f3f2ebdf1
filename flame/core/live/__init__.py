"""Dumps that still grow: read, added up and shown piece by piece."""
