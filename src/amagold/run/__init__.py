"""Runs many transitions of many chains: in chunks, over all host devices, with bounded memory."""

from amagold.run.chains import Draws, run_chains, start_chains
from amagold.run.chunks import run_chunks

__all__ = ["Draws", "run_chains", "run_chunks", "start_chains"]
