"""Runs many transitions of many chains: in chunks, over all host devices, with bounded memory."""

from amagold.runner._chains import Draws, run_chains, start_chains
from amagold.runner._chunked_run import run_chunks

__all__ = ["Draws", "run_chains", "run_chunks", "start_chains"]
