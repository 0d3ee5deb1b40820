# The public names of this room: `__init__.py` reads them, and so do type checkers.

from ._control_variate import ControlVariate as ControlVariate, control_variate as control_variate
from ._expansion import Expansion as Expansion, expansion as expansion
from ._full_gradient import Full as Full, full as full
from ._gradient_estimator import GradientEstimator as GradientEstimator
from ._minibatch import Minibatch as Minibatch, minibatch as minibatch
from ._noisy import Noisy as Noisy, noisy as noisy
