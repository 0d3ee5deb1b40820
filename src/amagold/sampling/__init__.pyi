# The public names of this room: `__init__.py` reads it, and so do type checkers.

from ._advice import SamplingWarning as SamplingWarning
from ._load import load as load
from ._resume import resume as resume
from ._run import Run as Run
from ._sample import sample as sample
from ._update import update as update
