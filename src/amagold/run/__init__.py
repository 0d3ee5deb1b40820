"""Runs many transitions of many chains: in chunks, over all host devices, with bounded memory."""

from amagold.run.chains import Draws, run_chains, start_chains
from amagold.run.chunks import run_chunks
from amagold.run.devices import use_all_cores

__all__ = ["Draws", "run_chains", "run_chunks", "start_chains", "use_all_cores"]
