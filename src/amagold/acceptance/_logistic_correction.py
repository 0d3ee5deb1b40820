"""What must be added to a standard normal number to make it logistic: the correction of the
minibatch Barker test.

No law does it exactly: the logistic's characteristic function over the normal's, pi t / sinh(pi t)
exp(t^2 / 2), grows without end. The paper spreads the correction over a grid by least squares with
a penalty, and sets negative probabilities to zero afterwards. Least squares over probabilities that
are not negative needs no penalty and comes closer: on the whole numbers from -12 to 12 the largest
error of the sum's distribution function is 5e-6. That the correction is discrete does no harm,
because the sum has a density.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.core.array_types import Float, Float32

# of 0, 1, ..., 12, and of their negatives
PROBABILITIES = np.array(
    [
        0.382320880,
        0.183111314,
        0.079530866,
        0.028247895,
        0.011806624,
        0.003563084,
        0.001837642,
        0.000338602,
        0.000329831,
        0.000010268,
        0.000054264,
        0.0,
        0.000009170,
    ]
)
BOTH_SIDES = np.concatenate([PROBABILITIES[:0:-1], PROBABILITIES])
CUMULATIVE = (np.cumsum(BOTH_SIDES) / BOTH_SIDES.sum())[:-1].astype(np.float32)


def correction(uniform: Float[Array, "*shape"]) -> Float32[Array, "*shape"]:
    """The correction at which its distribution function reaches a uniform number."""
    steps = (uniform[..., None] > CUMULATIVE).sum(axis=-1)
    return (steps - (len(PROBABILITIES) - 1)).astype(jnp.float32)
