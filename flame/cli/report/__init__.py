"""Run ``flame report``: of which traces, with which sections, and where it is written.

May import: console, core, exporters, options, reporting.
"""

from flame.cli.report.command import add_options

__all__ = ["add_options"]
