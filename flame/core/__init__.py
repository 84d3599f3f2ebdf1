"""Readers, attribution, projection: everything that knows traces and nothing of terminals."""
