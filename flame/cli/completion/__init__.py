"""Run `flame completion`: print what a shell needs to complete command lines, all of it static.

May import: core, exporters.
"""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")

_EPILOG = """\
bash   flame completion bash > ~/.local/share/bash-completion/completions/flame
zsh    flame completion zsh > ~/.zfunc/_flame, with fpath+=(~/.zfunc) before compinit in ~/.zshrc
fish   flame completion fish > ~/.config/fish/completions/flame.fish
Installing a new version calls for the same again. Nothing is run while you type but the shell.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))
    parser.epilog = _EPILOG
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script for the shell that ``args`` name."""
    from flame.cli.completion.bash import bash_script
    from flame.cli.completion.fish import fish_script
    from flame.cli.completion.table import command_table
    from flame.cli.completion.zsh import zsh_script
    from flame.cli.streams import print_text

    write = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}[args.shell]
    print_text(write(command_table()))
    return 0
