"""The command line. Nothing here imports JAX until a command runs, so that help is instant."""

from amagold.cli._commands import COMMANDS, Command, Option
from amagold.cli._main import main

__all__ = ["COMMANDS", "Command", "Option", "main"]
