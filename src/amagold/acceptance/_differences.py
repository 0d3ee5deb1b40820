"""The two parts of log a for tests that look at some of the data: one known beforehand, and one
difference per example.

    log a = rho + K(theta) - K(theta*) - sum_i D_i,   K = -log prior + T,   D_i = R_i(theta*) -
    R_i(theta)

where U_i = -log likelihood_i = T_i + R_i, T_i is its Taylor polynomial about the reference and T =
sum_i T_i. Of order 0 there are no control variates: T = 0, R_i = U_i, and no reference is needed.
Near the reference R_i is the small end of large numbers: where that can be done it is integrated,
not subtracted.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from amagold.acceptance._bounds_agreement import check_agreement
from amagold.acceptance._remainders import derivative, remainder_differences
from amagold.core import trees
from amagold.core.array_types import Float64
from amagold.core.shapes import Example, Flag, PerRow, Position, Rows, Scalar
from amagold.mode._reference import Reference, reference_of
from amagold.target import Posterior
from amagold.target._linear_bounds import LinearBounds

NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)
# relative difference of the two rules up to which the better one is taken to be right
AGREES = 1e-3
# of a subtraction, relative to its terms, within which the two forms must agree
ROUNDING = 16 * float(np.finfo(np.float32).eps)


@trees.record(static=("order", "bounds"))
class Differences:
    """How a posterior's log ratio falls apart, with or without a reference; `differences_of` makes
    it.
    """

    order: int
    # of the target: with them the remainder is that of a function of few numbers
    bounds: LinearBounds | None
    reference: Reference | None  # None of order 0

    def known(self, target: Posterior, position: Position) -> Scalar:
        """K = -log prior + T, without the constant of T: what is known of the energy before any
        example is looked at.
        """
        prior = -target.log_prior(position)
        if self.reference is None:
            return prior
        return prior + self.reference.taylor_energy(self.reference.away(position), self.order)

    def between(
        self, target: Posterior, position: Position, proposed: Position, rows: Rows
    ) -> PerRow:
        """D_i = R_i(theta*) - R_i(theta), one number for each of the rows."""
        if self.reference is None:
            return target.log_likelihoods(position, rows) - target.log_likelihoods(proposed, rows)
        if self.bounds is not None:
            return remainder_differences(
                self.bounds, self.reference, self.order, position, proposed, rows
            )
        center = self.reference.position
        here, there = (
            _remainders(target, self.order, center, at, rows) for at in (position, proposed)
        )
        return there - here


def differences_of(
    target: Posterior,
    order: int | None = 2,
    center: trees.PyTree = None,
    reference: Reference | None = None,
) -> Differences:
    """The differences of an order about the center, about a known reference, or about the mode, in
    this order of preference.
    """
    order = checked_order(order, center)
    if order == 0:
        return Differences(0, target.bounds, None)
    if center is None and reference is not None and order == 2 and reference.hessian is None:
        center = reference.position
    if reference is None or center is not None:
        reference = reference_of(target, center, order)
    if target.bounds is not None:
        check_agreement(target, target.bounds, reference.position)
    return Differences(order, target.bounds, reference)


def checked_order(order: int | None, center: trees.PyTree = None) -> int:
    """The order as a number; None is 0."""
    if order is not None and (isinstance(order, bool) or order not in (0, 1, 2)):
        raise ValueError(f"order must be 0, 1 or 2, got {order!r}; 0 is without control variates")
    if not order and center is not None:
        raise ValueError(
            "center must not be given with order=0, which uses no control variates; leave it out "
            "or use order=2"
        )
    return int(order or 0)


def _rules(order: int) -> tuple[Float64[np.ndarray, " places"], Float64[np.ndarray, "2 places"]]:
    """Places t in (0, 1), and two rows of weights for the integral of (1 - t)^order / order! f(t):
    of all places, and of three of them.
    """
    places = 0.5 * (1.0 + NODES)
    best = 0.5 * WEIGHTS * (1.0 - places) ** order / math.factorial(order)
    # exact for parabolas f: the integrals with f = t^j are j! / (j + order + 1)!
    moments = [math.factorial(power) / math.factorial(power + order + 1) for power in range(3)]
    fewer = np.linalg.solve(np.vander(places[:3], increasing=True).T, np.array(moments))
    return places, np.stack([best, np.append(fewer, 0.0)])


def _remainders(
    target: Posterior, order: int, center: Position, position: Position, rows: Rows
) -> PerRow:
    """R_i(theta) for each of the rows, for any likelihood."""
    step = jax.tree.map(jnp.subtract, position, center)
    places, rules = _rules(order)

    def one(row: Example) -> tuple[Scalar, Scalar, Scalar, Flag]:
        def along(place: Scalar) -> Scalar:
            return -target.log_likelihood(
                jax.tree.map(lambda at, by: at + place * by, center, step), row
            )

        value = -target.log_likelihood(position, row)
        start = jnp.zeros((), value.dtype)
        # R = U_i(theta) - U_i(reference) - U_i'(reference) d - ... up to the order, by subtraction
        terms = jnp.stack(
            [
                value,
                *(
                    -derivative(along, number)(start) / math.factorial(number)
                    for number in range(order + 1)
                ),
            ]
        )
        # R = integral over (0, 1) of (1 - t)^order / order! times the next derivative along the way
        slopes = jax.vmap(derivative(along, order + 1))(jnp.asarray(places, value.dtype))
        integral, coarse = jnp.asarray(rules, value.dtype) @ slopes
        is_smooth = jnp.abs(integral - coarse) <= AGREES * jnp.dot(
            jnp.asarray(rules[0], value.dtype), jnp.abs(slopes)
        )
        return integral, terms.sum(), jnp.abs(terms).sum(), is_smooth

    integral, direct, size, is_smooth = jax.vmap(one)(rows)
    # where derivatives jump, as in networks, both rules may miss it alike, but the subtraction does
    # not; what it can see is judged by the rows together, because one row's terms may be small by
    # chance
    is_close = jnp.abs(integral - direct) <= ROUNDING * size.mean()
    return jnp.where(is_smooth & is_close, integral, direct)
