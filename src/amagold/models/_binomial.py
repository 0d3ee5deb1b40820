"""Several trials of one row: how many of them succeeded."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from amagold.models._default_priors import of_link
from amagold.models._design import design_of
from amagold.models._log_sigmoid import log_sigmoid
from amagold.models._outcomes import successes_of, two_classes
from amagold.models._regression import FAMILIES, Predictor, family, regression
from amagold.models._row_terms import check_offset
from amagold.models._stored_table import examples_of
from amagold.models._table import Sheet
from amagold.target import LinearBounds, Posterior

NEAR = 4.0  # of the best z, where logarithms of ratios are better than ratios of logarithms


class BinomialExample(NamedTuple):
    """One row of the table: its predictors, and its successes of some trials."""

    predictors: Any
    successes: jax.Array
    trials: jax.Array
    weight: jax.Array | None = None
    offset: jax.Array | None = None


def num_trials(z: jax.Array, example: BinomialExample) -> jax.Array:
    return example.trials


@dataclass(frozen=True)
class TrialsCurvature:
    """That of one trial is the same for a success and a failure."""

    of_one: Any

    def __call__(self, z: jax.Array, example: BinomialExample) -> jax.Array:
        return example.trials * self.of_one(z, example)


@family("binomial", BinomialExample)
@dataclass(frozen=True)
class Binomial:
    """log p(k of n | z) = k log p(1 | z) + (n - k) log p(-1 | z), up to a constant: less its
    largest value for the logistic, whose small end many trials would lose in float32.
    """

    link: str

    def __call__(self, z: jax.Array, example: BinomialExample) -> jax.Array:
        if self.link == "logistic":
            return log_odds_of_trials(z, example.successes, example.trials)
        return _of_trials(self.link, z, example.successes, example.trials)

    @property
    def bends_slowly(self) -> bool:
        return getattr(self.of_one, "bends_slowly", False)

    def bounds(self, predictor: Predictor) -> LinearBounds:
        """Those of one trial, n times."""
        bounds = self.of_one.bounds(predictor)
        lower = bounds.lower_curvature
        return bounds._replace(
            outcome=self,
            scale=num_trials,
            lower_curvature=None if lower is None else TrialsCurvature(lower),
        )

    @property
    def of_one(self) -> Any:
        """The outcome of one trial."""
        return FAMILIES[self.link].outcome()

    def mean(self, z: jax.Array) -> jax.Array:
        """The probability of a success."""
        return self.of_one.mean(z)

    def draw(self, key: jax.Array, z: jax.Array, trials: Any = 1.0) -> jax.Array:
        if isinstance(trials, float) and trials == 1.0:
            return self.of_one.draw(key, z)
        num_trials = jnp.broadcast_to(jnp.asarray(trials, jnp.float32), z.shape)
        return jax.random.binomial(key, num_trials, self.mean(z))

    def log_density(self, y: jax.Array, z: jax.Array, trials: Any = 1.0) -> jax.Array:
        log_gamma = jax.scipy.special.gammaln
        ways = log_gamma(trials + 1.0) - log_gamma(y + 1.0) - log_gamma(trials - y + 1.0)
        return ways + _of_trials(self.link, z, y, trials)


def _of_trials(link: str, z: jax.Array, successes: Any, trials: Any) -> jax.Array:
    of_one, one = FAMILIES[link].outcome(), jnp.ones_like(z)
    log_p, log_q = (of_one.log_density(y, z) for y in (one, 0.0 * one))
    # not 0 times -inf
    return jnp.where(successes > 0, successes * log_p, 0.0) + jnp.where(
        trials > successes, (trials - successes) * log_q, 0.0
    )


@jax.custom_jvp
def log_odds_of_trials(z: jax.Array, successes: jax.Array, trials: jax.Array) -> jax.Array:
    """k log(s(z) / r) + (n - k) log(s(-z) / q) with r = k / n, q = 1 - r, s the sigmoid."""
    share, missed = successes / trials, (trials - successes) / trials
    is_inner = (share > 0.0) & (missed > 0.0)
    r, q = jnp.where(is_inner, share, 0.5), jnp.where(is_inner, missed, 0.5)
    best = jnp.log(r) - jnp.log(q)
    is_near = is_inner & (jnp.abs(z - best) < NEAR)
    d = jnp.where(is_near, z - best, 0.0)
    # log(s(z) / r) = -log(1 + q (exp(-d) - 1)), d = z - log(r / q)
    near = -r * jnp.log1p(q * jnp.expm1(-d)) - q * jnp.log1p(r * jnp.expm1(d))
    far = share * log_sigmoid(z) + missed * log_sigmoid(-z)
    entropy = jnp.where(is_inner, r * jnp.log(r) + q * jnp.log(q), 0.0)
    return trials * jnp.where(is_near, near, far - entropy)


@log_odds_of_trials.defjvp
def _slope(places: tuple[Any, ...], moves: tuple[Any, ...]) -> tuple[jax.Array, jax.Array]:
    # d/dz = n (r - s(z)) = n (s(-z) - q); successes and trials are data
    z, successes, trials = places
    share, missed = successes / trials, (trials - successes) / trials
    below = jnp.where(z > 0.0, jax.nn.sigmoid(-z) - missed, share - jax.nn.sigmoid(z))
    return log_odds_of_trials(*places), trials * below * moves[0]


def of_two_classes(
    sheet: Sheet,
    observed: Any,
    link: str,
    quantile: Callable[[float, float], float],
    prior_scale: float | None,
    standardize: bool | None,
) -> Posterior:
    """The regression of one trial of each row, or of as many as the sheet says; `quantile` is the
    z of a share of ones among so many observations.
    """
    one, rows = FAMILIES[link], sheet.rows
    check_offset(rows)
    if rows.trials is None:
        seen, share = two_classes(observed, sheet.num_rows, rows)
    else:
        seen, share = successes_of(observed, rows)
    center = quantile(share, sheet.num_observations) - rows.mean_offset
    design = design_of(sheet, of_link(center), prior_scale, standardize)
    if rows.trials is None:
        data = examples_of(one.example, design.predictors, seen, rows)
        return regression(one.outcome(), data, design.prior, design.transform)
    trials = jnp.asarray(rows.trials, jnp.float32)
    data = BinomialExample(design.predictors, jnp.asarray(seen), trials, **rows.stored())
    return regression(Binomial(link), data, design.prior, design.transform)
