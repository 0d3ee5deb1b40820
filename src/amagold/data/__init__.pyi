# The names of this room: `__init__.py` reads it, and so do type checkers.

from ._checked_arrays import checked_data as checked_data
from ._example_chunk import Chunk as Chunk
from ._file_changes import changed_file as changed_file
from ._in_memory import InMemory as InMemory
from ._joined import Joined as Joined
from ._memory_mapped import MemoryMapped as MemoryMapped
from ._no_data import NoData as NoData
from ._on_host import OnHost as OnHost
from ._open_data import open as open
from ._parts import part as part
from ._prepare_rows import prepare as prepare
from ._protocol import Data as Data
from ._shards import split as split
from ._split_over import split_over as split_over
from ._spread import (
    CHAIN as CHAIN,
    DATA as DATA,
    Spread as Spread,
    elsewhere_in as elsewhere_in,
    on_mesh as on_mesh,
    spread_in as spread_in,
    spread_over as spread_over,
    while_any as while_any,
)
from ._viewed import Viewed as Viewed
