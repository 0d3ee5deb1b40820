"""How many steps a trajectory may have."""

import numpy as np

MAX_STEPS = 1024
TURNS = (1, 2, 3, 4)  # steps of a quarter turn: a posterior that needs more is no Gaussian


def trajectory_lengths() -> list[int]:
    """1, 2, 3, 4, 5, 6, 8, ...: whole numbers, at most a third apart."""
    return sorted({round(float(value)) for value in np.geomspace(1, MAX_STEPS, 28)})
