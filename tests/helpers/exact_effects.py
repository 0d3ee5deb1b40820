"""Exact draws from a small mixed model with one random intercept, by quadrature in float64.

A group's likelihood depends on the intercept and its effect through their sum alone, so that grids
of (intercept + effect, slope), of the intercept and of the log scale are all that is needed.
"""

from functools import cache

import numpy as np
from scipy.special import gammaln, log_ndtr

from amagold import models

SIZES = (1, 1, 2, 3, 0, 5, 8, 12, 20, 40, 60, 90)
NUM_ROWS = sum(SIZES)
FIXED_SCALES = 1.5  # of the coefficients' prior
SUMS = np.linspace(-11.0, 11.0, 881)
INTERCEPTS = np.linspace(-4.0, 4.0, 129)
SLOPES = np.linspace(-0.8, 1.6, 97)
LOG_SCALES = np.linspace(-4.0, 2.2, 125)
DISPERSION = 1.5
TRIALS = 4


@cache
def table(family):
    """Predictor, groups and outcomes: effects are large, small groups are all of a kind."""
    generator = np.random.default_rng(4)
    group = np.repeat(np.arange(len(SIZES)), SIZES).astype(np.int32)
    x = generator.normal(size=NUM_ROWS).astype(np.float32)
    z = -0.3 + 0.5 * x + 1.3 * generator.normal(size=len(SIZES))[group]
    p = 1.0 / (1.0 + np.exp(-z))
    y = {
        "logistic": lambda: generator.random(NUM_ROWS) < p,
        "probit": lambda: generator.random(NUM_ROWS) < p,
        "binomial": lambda: generator.binomial(TRIALS, p),
        "poisson": lambda: generator.poisson(np.exp(z)),
        "negative_binomial": lambda: generator.poisson(np.exp(z) * generator.gamma(1.5, 1 / 1.5)),
    }[family]()
    return x, group, np.asarray(y, float)


@cache
def mixed_target(family):
    x, group, y = table(family)
    extra = {}
    if family == "binomial":
        extra = {"trials": np.full(NUM_ROWS, TRIALS)}
    if family == "negative_binomial":
        extra = {"dispersion": DISPERSION}
    groups = {"1|g": models.Group(group, num_levels=len(SIZES))}
    return models.mixed(
        x[:, None], y, groups, family, prior_scale=FIXED_SCALES, standardize=False, **extra
    )


def log_likelihood(family, y, z):
    if family == "poisson":
        return y * z - np.exp(z)
    if family == "probit":
        return np.where(y > 0, log_ndtr(z), log_ndtr(-z))
    if family == "negative_binomial":
        return y * z - (y + DISPERSION) * np.logaddexp(np.log(DISPERSION), z) + gammaln(1.0)
    return y * z - (TRIALS if family == "binomial" else 1.0) * np.logaddexp(0.0, z)


@cache
def _grids(family):
    """exp(log likelihood) of each group over (sum, slope), and the mass of (scale, intercept,
    slope).
    """
    x, group, y = table(family)
    curves = []
    for number in range(len(SIZES)):
        total = np.zeros((len(SUMS), len(SLOPES)))
        for row in np.flatnonzero(group == number):
            z = SUMS[:, None] + float(x[row]) * SLOPES
            total += log_likelihood(family, y[row], z)
        curves.append(np.exp(total - total.max()))
    ridge = -0.5 * (INTERCEPTS[:, None] ** 2 + SLOPES**2) / FIXED_SCALES**2
    masses = []
    for log_scale in LOG_SCALES:
        kernel = _kernel(INTERCEPTS, log_scale)
        # half-Student-t(3) of scale 1, and the Jacobian of the logarithm
        own = -2.0 * np.log1p(np.exp(2.0 * log_scale) / 3.0) + log_scale
        masses.append(own + ridge + sum(np.log(kernel @ curve + 1e-300) for curve in curves))
    masses = np.stack(masses)
    return np.stack(curves), np.exp(masses - masses.max())


def _kernel(intercepts, log_scale):
    """N(u; 0, s^2) on the grid of sums; narrower than its spacing, what falls between."""
    scale = max(np.exp(log_scale), 0.3 * (SUMS[1] - SUMS[0]))
    kernel = np.exp(-0.5 * ((SUMS - np.atleast_1d(intercepts)[:, None]) / scale) ** 2)
    return kernel / kernel.sum(axis=1, keepdims=True)


@cache
def exact_effects(family, num_draws):
    """Positions of the target: a dict of arrays with a leading axis of draws."""
    curves, mass = _grids(family)
    generator = np.random.default_rng(0)
    places = generator.choice(mass.size, num_draws, p=mass.ravel() / mass.sum())
    places = np.unravel_index(places, mass.shape)
    log_scale, intercept, slope = (
        grid[place] + (grid[1] - grid[0]) * generator.uniform(-0.5, 0.5, num_draws)
        for grid, place in zip((LOG_SCALES, INTERCEPTS, SLOPES), places, strict=True)
    )
    effects = np.empty((num_draws, len(SIZES)))
    for number, curve in enumerate(curves):
        kernel = np.exp(-0.5 * ((SUMS - intercept[:, None]) * np.exp(-log_scale[:, None])) ** 2)
        weights = kernel * curve.T[places[2]]
        upto = np.cumsum(weights, axis=1)
        at = (upto <= generator.random(num_draws)[:, None] * upto[:, -1:]).sum(axis=1)
        at = np.minimum(at, len(SUMS) - 1)
        jitter = generator.uniform(-0.5, 0.5, num_draws) * (SUMS[1] - SUMS[0])
        effects[:, number] = SUMS[at] + jitter - intercept
    return {
        "theta": np.stack([intercept, slope], axis=1).astype(np.float32),
        "1|g": effects.astype(np.float32),
        "1|g_sigma": log_scale.astype(np.float32),
    }


def effect_features(positions):
    """Means, squares, soft cdfs and products of everything."""
    u = np.concatenate(
        [
            np.asarray(positions[name], np.float64).reshape(len(positions["theta"]), -1)
            for name in ("theta", "1|g_sigma", "1|g")
        ],
        axis=1,
    )
    pairs = [u[:, :1] * u[:, 3:], u[:, 1:2] * u[:, 3:], u[:, 2:3] * u[:, 3:] ** 2]
    return np.concatenate([u, u**2, np.tanh(2.0 * u), np.tanh(2.0 * (u - 1.0)), *pairs], axis=1)
