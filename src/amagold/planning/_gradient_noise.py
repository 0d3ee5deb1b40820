"""What the noise of minibatch gradients costs in acceptance: measured once per example, predicted
for every batch plan.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.core.randomness import row_numbers
from amagold.gradients import minibatch
from amagold.mode._curvature import DENSE_PARAMETERS, whitening_of
from amagold.mode._reference import Reference
from amagold.mode._spectrum import Spectrum
from amagold.planning._discretisation import turning
from amagold.target import Posterior

EXAMPLES = 4096  # per position, whose gradients are looked at
MOST_KEPT = 4096  # parameters, up to which single examples' gradients are kept
VALUES = 2**22  # numbers in them at a time
EXPECTED = 0.5  # of the noise that the curvature stands for, that is there at least
# minibatch gradients per position beyond that, and examples in each
DRAWS_OF_MANY, BATCH_OF_MANY = 32, 32


class GradientNoise(NamedTuple):
    """The covariance of B grad U~ for one example, B = 1: a matrix over all parameters, or its
    diagonal.
    """

    covariance: np.ndarray

    def along(
        self, mass: np.ndarray, spectrum: Spectrum, directions: np.ndarray | None
    ) -> np.ndarray:
        """The noise of one example's gradient in units of the mass, for each eigenvalue; the sum is
        B V^2.
        """
        if directions is not None and self.covariance.ndim == 2:
            # whitened by the mass: W C W^T with M^-1 = W^T W
            columns = whitening_of(mass).T @ directions
            return np.einsum("ij,ik,kj->j", columns, self.covariance, columns)
        # a model that fits has as much noise as curvature along every direction
        share = spectrum.eigenvalues * spectrum.counts
        variances = 1.0 / mass if mass.ndim == 1 else np.diag(np.linalg.inv(mass))
        own = self.covariance if self.covariance.ndim == 1 else np.diag(self.covariance)
        return np.sum(own * variances) * share / share.sum()


def at_least_expected(
    noises: dict[int | None, GradientNoise], of_data: np.ndarray | None, num_examples: int
) -> dict[int | None, GradientNoise]:
    """With half of what a model that fits is expected to have, E[sum_i g_i g_i^T] = H: some
    examples do not see events of one in a hundred thousand, which are most of the noise.
    """
    plain = noises.get(None)
    if plain is None or of_data is None or num_examples <= EXAMPLES:  # all of them were seen
        return noises
    expected = EXPECTED * num_examples * of_data
    own = plain.covariance if plain.covariance.ndim == 2 else np.diag(plain.covariance)
    # along every parameter: the part of what is expected that was not seen
    seen, wanted = np.diag(own), np.diag(expected)
    if (seen >= wanted).all():
        return noises
    missing = np.where(seen < wanted, wanted - seen, 0.0)
    covariance = plain.covariance + (np.diag(missing) if plain.covariance.ndim == 2 else missing)
    return {**noises, None: GradientNoise(covariance)}


def measure_noise(
    target: Posterior, positions: trees.PyTree, key: jax.Array, reference: Reference | None = None
) -> dict[int | None, GradientNoise]:
    """The noise of one example's gradient, averaged over positions stacked on a leading axis, by
    the order of the control variates.

    None is without them; with a reference there are orders 1 and, where its Hessian is known, 2.
    """
    if trees.size(jax.tree.map(lambda leaf: leaf[0], positions)) > MOST_KEPT:
        batch = min(BATCH_OF_MANY, target.num_examples)
        found = np.asarray(_variances_of_many(target, positions, key, batch=batch), np.float64)
        return {None: GradientNoise(batch * found)}
    covariances = _covariances(target, reference, positions, key)
    return {
        order: GradientNoise(np.asarray(found, np.float64))
        for order, found in zip((None, 1, 2), covariances, strict=False)
    }


@jit(ONCE)
def _covariances(
    target: Posterior, reference: Reference | None, positions: trees.PyTree, key: jax.Array
) -> tuple[jax.Array, ...]:
    """N^2 Cov over examples of grad U_i, less T_i' of order 1 and 2: matrices where parameters are
    few, and their diagonals else.
    """
    num_positions = jax.tree.leaves(positions)[0].shape[0]
    size = trees.size(positions) // num_positions
    is_small = size <= DENSE_PARAMETERS
    num_examples = EXAMPLES if is_small else VALUES // size

    def at(position: trees.PyTree, key: jax.Array) -> tuple[jax.Array, ...]:
        def differences(number: jax.Array) -> tuple[jax.Array, ...]:
            row = target.examples.rows(number)

            def gradient(at: trees.PyTree) -> jax.Array:
                return trees.flatten(jax.grad(lambda at: -target.log_likelihood(at, row))(at))

            here = gradient(position)
            if reference is None:
                return (here,)
            if reference.hessian is None:
                return here, here - gradient(reference.position)
            step = trees.unflatten_like(reference.away(position), position)
            there, turned = jax.jvp(gradient, (reference.position,), (step,))
            return here, here - there, here - there - turned

        numbers = row_numbers(key, (num_examples,), target.num_examples)
        found = jax.lax.map(differences, numbers, batch_size=256)
        centered = [target.num_examples * (each - each.mean(axis=0)) for each in found]
        return tuple(
            each.T @ each / (num_examples - 1) if is_small else jnp.var(each, axis=0, ddof=1)
            for each in centered
        )

    every = jax.lax.map(lambda pair: at(*pair), (positions, jax.random.split(key, num_positions)))
    return tuple(each.mean(axis=0) for each in every)


@partial(jax.jit, static_argnames=("batch",))
def _variances_of_many(
    target: Posterior, positions: trees.PyTree, key: jax.Array, *, batch: int
) -> jax.Array:
    """The diagonal of a minibatch gradient's covariance, for so many parameters that gradients
    cannot be kept.
    """
    estimator = minibatch(batch)

    def at(position: trees.PyTree, key: jax.Array) -> jax.Array:
        rows = estimator.draw(key, target, DRAWS_OF_MANY)

        def estimate(row: jax.Array) -> jax.Array:
            return trees.flatten(
                estimator.estimate(target, position, estimator.gather(target, row), ())
            )

        # one pass, with differences from the first gradient so that the squares do not cancel
        first = estimate(rows[0])

        def add(
            carry: tuple[jax.Array, jax.Array], row: jax.Array
        ) -> tuple[tuple[jax.Array, jax.Array], None]:
            difference = estimate(row) - first
            return (carry[0] + difference, carry[1] + difference**2), None

        (total, squares), _ = jax.lax.scan(
            add, (jnp.zeros_like(first), jnp.zeros_like(first)), rows[1:]
        )
        return (squares - total**2 / DRAWS_OF_MANY) / (DRAWS_OF_MANY - 1)

    num_positions = jax.tree.leaves(positions)[0].shape[0]
    keys = jax.random.split(key, num_positions)
    return jax.lax.map(lambda pair: at(*pair), (positions, keys)).mean(axis=0)


def noise_variance(
    by_direction: np.ndarray,
    spectrum: Spectrum,
    step_sizes: np.ndarray,
    num_steps: int,
    friction_share: float,
    plan: str,
    batch_size: int,
    num_examples: int,
) -> np.ndarray:
    """The variance of log a that minibatches bring, for each step size; NaN where the step is
    unstable.

    Var(log a) = (epsilon^2 / 4) sum_j V_j^2 sum_{t,u} corr(error_t, error_u) E[(p_t + p_{t+1}) (p_u
    + p_{u+1})]_j, where the momentum along direction j keeps c = (1 - b) / (1 + b) of itself per
    step and turns. All sums over t and u are geometric.

    Args:
      by_direction: V_j^2 of one example's gradient, from `GradientNoise.along`.
      spectrum: of the Hessian in units of the mass.
      step_sizes: epsilon, a vector of them.
      num_steps: T; for "epoch" one epoch's batches, for "palindrome" two.
      friction_share: T b, with b = epsilon * friction.
      plan: "iid", "epoch" or "palindrome".
      batch_size, num_examples: B and N.
    """
    keep = (1.0 - friction_share / num_steps) / (1.0 + friction_share / num_steps)
    z = keep * np.exp(1j * turning(spectrum, step_sizes))
    itself = num_steps * (2.0 + 2.0 * keep)
    between = 2.0 * (1.0 + keep) ** 2 / keep
    variance = by_direction / batch_size
    if plan == "iid":
        sums = np.full(z.shape, itself)
    else:
        with np.errstate(invalid="ignore"):
            # all pairs of different steps: sum_{lag} (T - lag) z^lag
            pairs = np.real((num_steps * z * (1.0 - z) - z * (1.0 - z**num_steps)) / (1.0 - z) ** 2)
            # a palindrome's batch meets itself again at lags 1, 3, ..., T - 1
            again = (
                np.real(z * (1.0 - z**num_steps) / (1.0 - z**2)) if plan == "palindrome" else 0.0
            )
        # without repetition two batches' errors have correlation -1 / (N / B - 1), and each is less
        # noisy
        apart = 1.0 / (num_examples / batch_size - 1.0)
        sums = (1.0 + apart) * (itself + between * again) - apart * (itself + between * pairs)
        variance = variance * (num_examples - batch_size) / (num_examples - 1.0)
    return 0.25 * np.square(step_sizes) * (np.maximum(sums, 0.0) @ variance)
