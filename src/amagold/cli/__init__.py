"""The command line. Nothing here imports JAX until a command runs, so that help is instant."""

from amagold.cli.main import main

__all__ = ["main"]
