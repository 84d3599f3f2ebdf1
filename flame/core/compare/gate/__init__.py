"""Decide a condition on a comparison, as `--fail-on` states it, and how sure that is."""
