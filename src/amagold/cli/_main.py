"""`amagold COMMAND`: parse, then hand over."""

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence

from amagold import __version__
from amagold.cli._commands import COMMANDS, Command
from amagold.core.optional_packages import MissingPackageError
from amagold.core.printable import printable


def main(arguments: Sequence[str] | None = None, words: Sequence[Command] = COMMANDS) -> int:
    """Run the command line, which knows these words, and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="amagold", description="Exact posterior draws from minibatch gradients."
    )
    parser.add_argument("--version", action="version", version=f"amagold {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in words:
        child = commands.add_parser(command.name, help=command.summary, description=command.summary)
        for option in command.options:
            child.add_argument(*option.names, **option.settings)
    chosen = parser.parse_args(arguments)
    if chosen.command is None:
        parser.print_help()
        return 0
    command = next(command for command in words if command.name == chosen.command)
    settings = {name: value for name, value in vars(chosen).items() if name != "command"}
    try:
        code = importlib.import_module(command.module).run(**settings)
        sys.stdout.flush()
    except BrokenPipeError:
        return _end_quietly()
    except (ValueError, OSError, MissingPackageError) as error:
        print(printable(f"amagold {command.name}: {error}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"amagold {command.name}: interrupted", file=sys.stderr)
        return 130
    return code or 0


def _end_quietly() -> int:
    """Nobody reads any more, as in `amagold report RUN | head -1`: end as other tools do."""
    # what is left in the buffer must not be written when Python ends
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE
