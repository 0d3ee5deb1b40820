"""Where examples live. The only room that indexes or slices them; everybody else asks.

A target holds one `Data`. Further places for examples, such as files or other devices, are further
classes with the same few members.
"""

from amagold.data._checked_arrays import checked_data
from amagold.data._example_chunk import Chunk
from amagold.data._in_memory import InMemory
from amagold.data._joined import Joined
from amagold.data._memory_mapped import MemoryMapped
from amagold.data._no_data import NoData
from amagold.data._on_host import OnHost
from amagold.data._open_data import open
from amagold.data._parts import part
from amagold.data._prepare_rows import prepare
from amagold.data._protocol import Data
from amagold.data._shards import split
from amagold.data._split_over import split_over
from amagold.data._spread import (
    CHAIN,
    DATA,
    Spread,
    elsewhere_in,
    on_mesh,
    spread_in,
    spread_over,
    while_any,
)
from amagold.data._viewed import Viewed

__all__ = [
    "CHAIN",
    "DATA",
    "Chunk",
    "Data",
    "InMemory",
    "Joined",
    "MemoryMapped",
    "NoData",
    "OnHost",
    "Spread",
    "Viewed",
    "checked_data",
    "elsewhere_in",
    "on_mesh",
    "open",
    "part",
    "prepare",
    "split",
    "split_over",
    "spread_in",
    "spread_over",
    "while_any",
]
