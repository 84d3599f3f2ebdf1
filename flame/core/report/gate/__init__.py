"""Decide a condition on the numbers of a report, as `--fail-on` states it.

May import the sections and the findings of a report.
"""
