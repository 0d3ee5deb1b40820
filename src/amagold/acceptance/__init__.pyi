# The public names of this room: `__init__.py` reads them, and so do type checkers.

from ._acceptance_test import (
    Acceptance as Acceptance,
    Decision as Decision,
    UnboundTest as UnboundTest,
)
from ._austerity import Austerity as Austerity, austerity as austerity
from ._barker import Barker as Barker, BarkerTest as BarkerTest, barker as barker
from ._confidence import Confidence as Confidence, confidence as confidence
from ._delayed import Delayed as Delayed, DelayedTest as DelayedTest, delayed as delayed
from ._firefly import FireflyTest as FireflyTest
from ._firefly_setup import Firefly as Firefly, firefly as firefly
from ._full_test import FullTest as FullTest, full as full
from ._level_test import LevelTest as LevelTest
from ._never_reject import NeverReject as NeverReject, never_reject as never_reject
from ._predicted_acceptance import predicted_acceptance as predicted_acceptance
from ._sequential_test import SequentialTest as SequentialTest
from ._tuna import TunaTest as TunaTest
from ._tuna_setup import Tuna as Tuna, tuna as tuna
