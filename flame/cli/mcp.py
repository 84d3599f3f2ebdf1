"""Run ``flame mcp``: let an assistant ask about the traces in some folders."""

from __future__ import annotations

import argparse

from flame.core.starting import prepare_process


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    text = "a folder whose traces may be read, and none outside of it"
    parser.add_argument("folders", metavar="FOLDER", nargs="+", help=text)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve on standard input and output until the client has gone."""
    prepare_process()
    from flame.mcp.folders import Folders
    from flame.mcp.server import serve

    serve(Folders(args.folders))
    return 0
