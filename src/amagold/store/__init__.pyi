# The names of this room: `__init__.py` reads it, and so do type checkers.

from ._lock import StoreInUseError as StoreInUseError
from ._zarr_store import StoreFailedError as StoreFailedError
