"""The lower bounds that Firefly rests on: a parabola below each example's log likelihood, and how
far off it is.
"""

import jax
import jax.numpy as jnp

from amagold.acceptance._remainders import Changes, Remainder, predictors_of, remainder
from amagold.core.shapes import Example, Position, Predictor, Rows, Scalar
from amagold.target._linear_bounds import LinearBounds


def curvatures(bounds: LinearBounds, center: Predictor, example: Example) -> tuple[Scalar, Scalar]:
    """kappa_i and what gap_i / (|z - z_ref|^2 / 2) cannot exceed, for the predictor `center` at the
    reference.

    log B_i(z) = f(z_ref) + f'(z_ref) . (z - z_ref) - kappa_i |z - z_ref|^2 / 2, where f is the
    outcome. A bound K on its second derivatives gives kappa_i = K scale_i, and f <= its tangent + K
    scale_i |z - z_ref|^2 / 2, if nothing sharper is known.
    """
    scale = jnp.float32(1.0) if bounds.scale is None else bounds.scale(center, example)
    most = bounds.derivatives[1] * scale
    below = most if bounds.lower_curvature is None else bounds.lower_curvature(center, example)
    above = most if bounds.upper_curvature is None else bounds.upper_curvature * scale
    return below, below + above


def gaps_of(
    bounds: LinearBounds,
    reference: Position,
    position: Position,
    proposed: Position,
    rows: Rows,
) -> Remainder:
    """gap_i at the two positions, for each of the rows, however near the reference, and what
    rounding may have added to them.
    """

    def one(center: Predictor, steps: Changes, row: Example) -> Remainder:
        kappa, _ = curvatures(bounds, center, row)

        def gap(step: Predictor) -> Remainder:
            # gap_i = kappa_i |z - z_ref|^2 / 2 - R_i, where R_i = -f(z) + f(z_ref) + f'(z_ref) . (z
            # - z_ref)
            value, rounding = remainder(lambda at: -bounds.outcome(at, row), 1, center, step)
            return Remainder(0.5 * kappa * jnp.sum(step**2) - value, rounding)

        return jax.vmap(gap)(steps)

    return jax.vmap(one)(*predictors_of(bounds, reference, position, proposed, rows), rows)
