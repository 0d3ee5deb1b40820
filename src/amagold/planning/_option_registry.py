"""The options that a plan chooses from, by name. A new one is a file, and a line here."""

from amagold.planning._conditional_option import ConditionalOption
from amagold.planning._control_variate_option import ControlVariateOption
from amagold.planning._expansion_option import ExpansionOption
from amagold.planning._few_examples_option import FewExamplesOption
from amagold.planning._full_gradient_option import FullGradientOption
from amagold.planning._full_test_option import FullTestOption
from amagold.planning._leapfrog_option import LeapfrogOption
from amagold.planning._minibatch_option import MinibatchOption
from amagold.planning._option import GradientOption, TestOption, TrajectoryOption
from amagold.planning._quarter_turn_option import QuarterTurnOption

# in order of simplicity: where figures are close, the earlier one is taken
_GRADIENTS: tuple[GradientOption, ...] = (
    FullGradientOption(),
    MinibatchOption(),
    ExpansionOption(),
    ControlVariateOption(),
)
_TRAJECTORIES: tuple[TrajectoryOption, ...] = (
    LeapfrogOption(),
    QuarterTurnOption(),
    ConditionalOption(),
)
_TESTS: tuple[TestOption, ...] = (FullTestOption(), FewExamplesOption())

GRADIENTS = {option.name: option for option in _GRADIENTS}
TRAJECTORIES = {option.name: option for option in _TRAJECTORIES}
TESTS = {option.name: option for option in _TESTS}
