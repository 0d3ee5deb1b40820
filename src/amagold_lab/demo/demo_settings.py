"""How much the demo draws."""

from typing import NamedTuple


class Sizes(NamedTuple):
    """Of one run: chains, draws thrown away and kept by each, and transitions per draw."""

    num_chains: int
    num_burn_in: int
    num_samples: int
    thin: int = 1


class DemoSettings(NamedTuple):
    """The sizes of both parts."""

    double_well: Sizes
    heart: Sizes


# The paper keeps 10^5 draws of the double well after a burn-in of 1000; so does this. At step size
# 0.05 a chain needs hundreds of transitions to change wells, so one chain would show its luck: many
# dispersed chains, thinned, do not.
FULL = DemoSettings(double_well=Sizes(250, 200, 400, thin=5), heart=Sizes(100, 100, 700))
