"""Posteriors whose truth is a formula or a grid."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from exact import normal, of_distribution, of_weights, on_a_line, on_a_plane
from record import Row, Truth, coordinate
from scipy import stats
from scipy.special import digamma, gammaln, polygamma

import amagold

theta = coordinate("theta")


def first(index):
    return coordinate("theta", index)


# Gaussians


def _normal(x):
    return -0.5 * x**2


def normal_1d():
    return Row(
        "normal, d = 1",
        lambda: amagold.Density(_normal, init=0.0),
        lambda: [normal("x", theta, 0.0, 1.0)],
        "formula",
    )


CORRELATION = 0.999


def _correlated(x):
    return -0.5 * (x[0] ** 2 - 2 * CORRELATION * x[0] * x[1] + x[1] ** 2) / (1 - CORRELATION**2)


def correlated():
    return Row(
        "normal, correlation .999",
        lambda: amagold.Density(_correlated, init=np.zeros(2, np.float32)),
        lambda: [
            normal("x", first(0), 0.0, 1.0),
            normal(
                "x - y",
                lambda draws: draws["theta"][..., 0] - draws["theta"][..., 1],
                0.0,
                2 - 2 * CORRELATION,
            ),
        ],
        "formula",
    )


SCALES = np.geomspace(0.1, 10.0, 100)


def _hundred(x):
    return -0.5 * jnp.sum((x / SCALES.astype(np.float32)) ** 2)


def hundred():
    return Row(
        "normal, d = 100, scales .1 to 10",
        lambda: amagold.Density(_hundred, init=np.zeros(100, np.float32)),
        lambda: [
            *(
                normal(f"x[{index}]", first(index), 0.0, SCALES[index] ** 2)
                for index in (0, 50, 99)
            ),
            of_distribution(
                "|z|^2",
                lambda draws: ((draws["theta"] / SCALES) ** 2).sum(axis=-1),
                stats.chi2(100),
            ),
        ],
        "formula",
    )


def _one_likelihood(mean, example):
    return -0.5 * (example - mean) ** 2


def _wide_prior(mean):
    return -0.5 * (mean / 3.0) ** 2


def one_example():
    variance = 1 / (1 + 1 / 9)
    return Row(
        "normal mean, N = 1",
        lambda: amagold.Posterior(
            _one_likelihood, _wide_prior, np.array([2.5], np.float32), init=0.0
        ),
        lambda: [normal("mean", theta, 2.5 * variance, variance)],
        "formula",
    )


# walls and skew


def _gamma_likelihood(log_rate, count):
    return count * log_rate - jnp.exp(log_rate)


def _gamma_prior(log_rate):
    return 0.5 * log_rate - jnp.exp(log_rate)


def _of_log_gamma(shape, rate):
    """log of a Gamma(shape, rate) number."""
    places = [
        float(np.log(stats.gamma(shape, scale=1 / rate).ppf(share))) for share in (0.05, 0.95)
    ]
    return Truth(
        "log rate",
        theta,
        float(digamma(shape) - np.log(rate)),
        float(polygamma(1, shape)),
        (places[0], 0.05),
        (places[1], 0.05),
    )


def zero_count():
    return Row(
        "one Poisson count of 0, Gamma(.5, 1) prior, log scale",
        lambda: amagold.Posterior(
            _gamma_likelihood, _gamma_prior, np.array([0.0], np.float32), init=0.0
        ),
        lambda: [_of_log_gamma(0.5, 2.0)],
        "formula",
    )


def _exponential(log_x):
    return log_x - jnp.exp(log_x)


def exponential():
    return Row(
        "exponential, log scale",
        lambda: amagold.Density(_exponential, init=0.0),
        lambda: [_of_log_gamma(1.0, 1.0)],
        "formula",
    )


def _bernoulli(logit, outcome):
    return outcome * logit - jax.nn.softplus(logit)


def _beta_prior(logit):
    return 0.5 * logit - jax.nn.softplus(logit)


def all_successes():
    a, b = 600.5, 0.5
    law = stats.beta(b, a)  # of the failures' probability, which keeps its digits
    places = [float(-np.log(law.isf(share)) + np.log1p(-law.isf(share))) for share in (0.05, 0.95)]
    truth = Truth(
        "logit",
        theta,
        float(digamma(a) - digamma(b)),
        float(polygamma(1, a) + polygamma(1, b)),
        (places[0], 0.05),
        (places[1], 0.05),
    )
    return Row(
        "600 of 600 successes, Beta(.5, .5) prior, logit scale",
        lambda: amagold.Posterior(_bernoulli, _beta_prior, np.ones(600, np.float32), init=0.0),
        lambda: [truth],
        "formula",
    )


def _positive(x):
    return x > 0


def half_normal():
    return Row(
        "half-normal on a domain",
        lambda: amagold.Density(_normal, domain=_positive, init=1.0),
        lambda: [of_distribution("x", theta, stats.halfnorm())],
        "formula",
    )


# heavy tails


def _student(x):
    return -1.5 * jnp.log1p(x**2 / 2.0)


def _cauchy(x):
    return -jnp.sum(jnp.log1p(x**2))


def student_2():
    def truths():
        return [
            of_distribution(f"x ({tail:g})", theta, stats.t(2), moments=False, tail=tail)
            for tail in (0.25, 0.05)
        ]

    return Row(
        "Student-t, 2 degrees of freedom",
        lambda: amagold.Density(_student, init=0.0),
        truths,
        "formula",
    )


def cauchy():
    return Row(
        "Cauchy, d = 2",
        lambda: amagold.Density(_cauchy, init=np.zeros(2, np.float32)),
        lambda: [
            of_distribution(f"x[{index}]", first(index), stats.cauchy(), moments=False, tail=0.1)
            for index in (0, 1)
        ],
        "formula",
    )


# curved


def _funnel(x):
    return (
        -0.5 * (x[0] / 3.0) ** 2
        - 0.5 * jnp.sum(x[1:] ** 2) * jnp.exp(-x[0])
        - 0.5 * (x.shape[0] - 1) * x[0]
    )


def funnel():
    return Row(
        "Neal's funnel, d = 5",
        lambda: amagold.Density(_funnel, init=np.zeros(5, np.float32)),
        lambda: [normal("log variance", first(0), 0.0, 9.0)],
        "formula",
    )


BEND = 1.0


def _banana(x):
    return -0.5 * x[0] ** 2 - 0.5 * (x[1] - BEND * (x[0] ** 2 - 1.0)) ** 2


def banana():
    def truths():
        (a, left), (b, right) = on_a_plane(
            lambda x, y: -0.5 * x**2 - 0.5 * (y - BEND * (x**2 - 1.0)) ** 2,
            (-7.0, 7.0),
            (-7.0, 45.0),
            2001,
        )
        return [of_weights("x", first(0), a, left), of_weights("y", first(1), b, right)]

    return Row(
        "banana", lambda: amagold.Density(_banana, init=np.zeros(2, np.float32)), truths, "grid"
    )


# several modes


def _two_normals(x):
    return jnp.logaddexp(
        jnp.log(0.7) - 0.5 * jnp.sum((x + 4.0) ** 2), jnp.log(0.3) - 0.5 * jnp.sum((x - 4.0) ** 2)
    )


def two_normals():
    def truths():
        places, weights = on_a_line(
            lambda x: np.logaddexp(
                np.log(0.7) - 0.5 * (x + 4.0) ** 2, np.log(0.3) - 0.5 * (x - 4.0) ** 2
            ),
            -14.0,
            14.0,
        )
        return [of_weights("x", first(0), places, weights, (0.0, 0.0))]

    return Row(
        ".7 N(-4, I) + .3 N(4, I), d = 2",
        lambda: amagold.Density(_two_normals, init=np.zeros(2, np.float32)),
        truths,
        "grid",
    )


def _spike(x):
    d = x.shape[0]
    narrow = jnp.log(0.05) - d * jnp.log(0.1) - 0.5 * jnp.sum((x / 0.1) ** 2)
    wide = jnp.log(0.95) - d * jnp.log(10.0) - 0.5 * jnp.sum((x / 10.0) ** 2)
    return jnp.logaddexp(narrow, wide)


def spike_and_slab():
    def below(place):
        return 0.05 * stats.norm.cdf(place / 0.1) + 0.95 * stats.norm.cdf(place / 10.0)

    def truths():
        return [
            Truth(
                "x",
                first(0),
                0.0,
                0.05 * 0.01 + 0.95 * 100.0,
                (-5.0, below(-5.0)),
                (5.0, below(-5.0)),
            )
        ]

    return Row(
        "5% N(0, .1^2) + 95% N(0, 10^2), d = 5",
        lambda: amagold.Density(_spike, init=np.zeros(5, np.float32)),
        truths,
        "formula",
    )


@cache
def clumps(num_low, num_high, high, seed, spread=1.0):
    generator = np.random.default_rng(seed)
    low = generator.normal(0.0, spread, num_low)
    return np.concatenate([low, generator.normal(high, spread, num_high)]).astype(np.float32)


def _of_clumps(y, prior_scale, between, low, high):
    def log_density(mean):
        # one outcome after the other, because the grid is fine
        total = -0.5 * (mean / prior_scale) ** 2
        for outcome in y.astype(np.float64):
            total = total - np.log1p((outcome - mean) ** 2)
        return total

    places, weights = on_a_line(log_density, low, high, 20_001)
    return [of_weights("location", first(0), places, weights, (between, between))]


def robust_clumps():
    y = clumps(11, 11, 10.0, 66)

    def target():
        return amagold.models.robust(
            np.ones((len(y), 1)),
            y,
            prior_scale=10.0,
            intercept=False,
            noise_scale=1.0,
            degrees_of_freedom=1.0,
        )

    return Row(
        "Student-t outcomes in two clumps, N = 22",
        target,
        lambda: _of_clumps(y, 10.0, 5.0, -8.0, 18.0),
        "grid",
    )


def robust_many():
    # close enough together for the exact test on a few examples to be planned
    y = clumps(400, 600, 12.0, 2, 0.5)

    def target():
        return amagold.models.robust(
            np.ones((len(y), 1)),
            y,
            prior_scale=10.0,
            intercept=False,
            noise_scale=1.0,
            degrees_of_freedom=1.0,
        )

    def truths():
        places = np.linspace(11.0, 13.0, 4001)  # the lower clump has e^-100 of the mass
        whole = np.concatenate([np.linspace(-2.0, 11.0, 4001)[:-1], places])
        residuals = np.subtract.outer(whole, y.astype(np.float64))
        logs = -0.5 * (whole / 10.0) ** 2 - np.log1p(residuals**2).sum(axis=1)
        weights = np.exp(logs - logs.max())
        assert weights[whole < 11.0].sum() < 1e-12 * weights.sum()
        return [of_weights("location", first(0), places, weights[whole >= 11.0])]

    return Row("Student-t outcomes in two clumps, N = 1,000", target, truths, "grid")


# regressions in awkward units


@cache
def narrow_noise():
    generator = np.random.default_rng(4)
    x = generator.normal(size=200)
    return x.astype(np.float32), (0.7 - 0.4 * x + 0.1 * generator.standard_t(4, 200)).astype(
        np.float32
    )


def _robust_in(unit, name):
    x, y = narrow_noise()
    y = (y * np.float32(unit)).astype(np.float32)

    def truths():
        def log_density(a, b):
            residuals = (y.astype(np.float64) - a[:, None] - b[:, None] * x.astype(np.float64)) / (
                0.1 * unit
            )
            return -0.5 * (a**2 + b**2) / (2.0 * unit) ** 2 - 2.5 * np.log1p(
                residuals**2 / 4.0
            ).sum(axis=1)

        (a, left), (b, right) = on_a_plane(
            log_density, (0.62 * unit, 0.78 * unit), (-0.48 * unit, -0.32 * unit), 601
        )
        return [of_weights("intercept", first(0), a, left), of_weights("slope", first(1), b, right)]

    def target():
        return amagold.models.robust(x[:, None], y, prior_scale=2.0 * unit, noise_scale=0.1 * unit)

    return Row(name, target, truths, "grid")


def robust_metres():
    return _robust_in(1.0, "Student-t regression, noise .1")


def robust_millimetres():
    return _robust_in(1000.0, "the same in thousandths, noise 100")


def _conjugate(X, y, prior_scale, noise):
    X, y = np.asarray(X, np.float64), np.asarray(y, np.float64)
    precision = X.T @ X / noise**2 + np.eye(X.shape[1]) / prior_scale**2
    covariance = np.linalg.inv(precision)
    return covariance @ (X.T @ y) / noise**2, covariance


def _with_ones(x):
    return np.column_stack([np.ones(len(x)), np.asarray(x, np.float64)])


@cache
def far_from_zero(name):
    generator = np.random.default_rng(5)
    if name == "sales":
        x = generator.normal(size=100)
        return x.astype(np.float32), (5000 + 150 * x + 327 * generator.normal(size=100)).astype(
            np.float32
        )
    if name == "years":
        x = np.arange(1950, 2021)
        return x.astype(np.float32), (
            14.0 + 0.015 * (x - 1985) + 0.2 * generator.normal(size=71)
        ).astype(np.float32)
    x = generator.normal(size=50)
    return x.astype(np.float32), (101_325 + 0.5 * x + generator.normal(size=50)).astype(np.float32)


def _linear(name, title, prior_scale, noise):
    x, y = far_from_zero(name)

    def truths():
        mean, covariance = _conjugate(_with_ones(x), y, prior_scale, noise)
        # the intercept and the slope, and the line at the middle, where it is known best
        at = np.array([1.0, float(np.mean(x, dtype=np.float64))])
        return [
            normal("intercept", first(0), mean[0], covariance[0, 0]),
            normal("slope", first(1), mean[1], covariance[1, 1]),
            normal(
                "line at the middle",
                lambda draws: draws["theta"] @ at,
                at @ mean,
                at @ covariance @ at,
            ),
        ]

    # so far from zero in its own units, the prior can only speak of the middle; it is flat there as
    # well
    is_far = True if name == "pressure" else None
    return Row(
        title,
        lambda: amagold.models.linear(
            x[:, None], y, prior_scale, noise_scale=noise, standardize=is_far
        ),
        truths,
        "formula",
    )


def calendar_years():
    return _linear("years", "linear regression on the calendar year", 100.0, 0.2)


def pressure():
    return _linear("pressure", "linear regression, outcomes 101,325 +- 1", 1e6, 1.0)


def sales():
    """The noise unknown: the coefficients are conjugate at each noise, which is on a grid."""
    x, y = far_from_zero("sales")
    X = _with_ones(x)

    def truths():
        logs = np.linspace(np.log(200.0), np.log(600.0), 401)
        spread = np.log(np.std(y, dtype=np.float64))  # the prior of the log noise is N(spread, 2^2)
        weight, means, variances = [], [], []
        for at in logs:
            noise = np.exp(at)
            marginal = 1e8 * X @ X.T + noise**2 * np.eye(len(y))
            weight.append(
                stats.multivariate_normal(np.zeros(len(y)), marginal).logpdf(y.astype(np.float64))
                - 0.5 * ((at - spread) / 2.0) ** 2
            )
            mean, covariance = _conjugate(X, y, 1e4, noise)
            means.append(mean)
            variances.append(np.diag(covariance))
        weights = np.exp(np.array(weight) - np.max(weight))
        weights /= weights.sum()
        means, variances = np.array(means), np.array(variances)
        found = [of_weights("log noise", coordinate("log_noise_scale"), logs, weights)]
        for index, name in enumerate(("intercept", "slope")):
            mean = float(weights @ means[:, index])
            variance = float(weights @ (variances[:, index] + (means[:, index] - mean) ** 2))
            cuts = (mean - 1.6 * variance**0.5, mean + 1.6 * variance**0.5)
            sd = np.sqrt(variances[:, index])
            below = float(weights @ stats.norm.cdf((cuts[0] - means[:, index]) / sd))
            above = float(weights @ stats.norm.sf((cuts[1] - means[:, index]) / sd))
            found.append(
                Truth(
                    name,
                    coordinate("coefficients", index),
                    mean,
                    variance,
                    (cuts[0], below),
                    (cuts[1], above),
                )
            )
        return found

    return Row(
        "linear regression, outcomes 5,000 +- 360, unknown noise",
        lambda: amagold.models.linear(x[:, None], y, 1e4, noise_scale=None),
        truths,
        "formula and grid",
    )


# logistic


def _logistic_grid(x, y, prior_scale, ranges, weights=1.0, num=301):
    sign = np.where(np.asarray(y) > 0, 1.0, -1.0)

    def log_density(a, b):
        z = a[:, None] + b[:, None] * x.astype(np.float64)
        return -0.5 * (a**2 + b**2) / prior_scale**2 - (weights * np.logaddexp(0.0, -sign * z)).sum(
            axis=1
        )

    (a, left), (b, right) = on_a_plane(log_density, *ranges, num)
    return [of_weights("intercept", first(0), a, left), of_weights("slope", first(1), b, right)]


def separable():
    x = np.linspace(-2.0, 2.0, 20).astype(np.float32)
    y = (x > 0).astype(int)
    return Row(
        "logistic, separable, N = 20",
        lambda: amagold.models.logistic(x[:, None], y, prior_scale=10.0),
        lambda: _logistic_grid(x, y, 10.0, ((-40.0, 40.0), (-15.0, 75.0)), num=1601),
        "grid",
    )


@cache
def rare():
    generator = np.random.default_rng(6)
    x = generator.normal(size=2_000)
    return x.astype(np.float32), (generator.random(2_000) < 1 / (1 + np.exp(6.3 - 0.8 * x))).astype(
        int
    )


def rare_events():
    x, y = rare()
    return Row(
        f"logistic, {rare()[1].sum()} events among 2,000",
        lambda: amagold.models.logistic(x[:, None], y, prior_scale=5.0),
        lambda: _logistic_grid(x, y, 5.0, ((-12.0, -3.0), (-3.0, 5.0))),
        "grid",
    )


def _predictor(position, example):
    return position[0] + position[1] * example["x"]


def _outcome(z, example):
    return -example["weight"] * jax.nn.softplus(-example["sign"] * z)


def _weighted(position, example):
    return _outcome(_predictor(position, example), example)


def _weighted_prior(position):
    return -0.5 * jnp.sum((position / 2.0) ** 2)


def _weight(z, example):
    return example["weight"]


# |s'| <= 1, s'' <= 1/4 and |s'''| <= 1/(6 sqrt 3) of softplus, times the weight
BOUNDS = amagold.LinearBounds(_predictor, _outcome, (1.0, 0.25, 0.0962251), _weight)


@cache
def weighted_table():
    generator = np.random.default_rng(9)
    x = generator.normal(size=1_000).astype(np.float32)
    sign = np.where(generator.random(1_000) < 1 / (1 + np.exp(-0.5 - x)), 1.0, -1.0).astype(
        np.float32
    )
    return {"x": x, "sign": sign, "weight": generator.gamma(0.5, 2.0, 1_000).astype(np.float32)}


def weighted():
    table = weighted_table()

    def target():
        return amagold.Posterior(
            _weighted, _weighted_prior, table, init=np.zeros(2, np.float32), bounds=BOUNDS
        )

    def truths():
        return _logistic_grid(
            table["x"],
            table["sign"],
            2.0,
            ((-0.2, 1.2), (0.4, 1.9)),
            table["weight"].astype(np.float64),
        )

    return Row("logistic with weights of the examples, own bounds", target, truths, "grid")


# counts


@cache
def counts():
    generator = np.random.default_rng(10)
    x = generator.normal(size=100)
    return x.astype(np.float32), generator.poisson(np.exp(0.3 + 0.6 * x))


def poisson():
    x, y = counts()

    def truths():
        def log_density(a, b):
            z = a[:, None] + b[:, None] * x.astype(np.float64)
            return -0.5 * (a**2 + b**2) / 4.0 + (y * z - np.exp(z) - gammaln(y + 1)).sum(axis=1)

        (a, left), (b, right) = on_a_plane(log_density, (-0.8, 1.4), (-0.3, 1.5), 601)
        return [of_weights("intercept", first(0), a, left), of_weights("slope", first(1), b, right)]

    return Row(
        "Poisson regression, N = 100",
        lambda: amagold.models.poisson(x[:, None], y, prior_scale=2.0),
        truths,
        "grid",
    )


ROWS = [
    normal_1d(),
    one_example(),
    correlated(),
    hundred(),
    zero_count(),
    exponential(),
    all_successes(),
    half_normal(),
    student_2(),
    cauchy(),
    funnel(),
    banana(),
    two_normals(),
    spike_and_slab(),
    robust_clumps(),
    robust_many(),
    robust_metres(),
    robust_millimetres(),
    sales(),
    calendar_years(),
    pressure(),
    separable(),
    rare_events(),
    weighted(),
    poisson(),
]
