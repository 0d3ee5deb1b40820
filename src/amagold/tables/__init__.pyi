# The names of this room: `__init__.py` reads it, and so do type checkers.

from ._compare import compare as compare
from ._fit import fit as fit
