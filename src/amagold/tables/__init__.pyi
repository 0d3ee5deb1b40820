# The names of this room: `__init__.py` reads it, and so do type checkers.

from ._fit import fit as fit
from ._loo import compare as compare
