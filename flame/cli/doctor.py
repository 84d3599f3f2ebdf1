"""Run ``flame doctor``: say what works on this machine, and how to mend what does not."""

from __future__ import annotations

import argparse

from flame.cli.streams import print_text

_EPILOG = "exit codes: 0 a GPU can be recorded here, 1 something for that is missing\n"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")
    parser.epilog = _EPILOG
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check this machine and print what was found."""
    from flame.doctor.report import as_json, as_text, examine, is_ready

    checks = examine()
    print_text(as_json(checks) if args.json else as_text(checks))
    return 0 if is_ready(checks) else 1
