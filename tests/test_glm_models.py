"""Ready-made regressions: their densities, the constants that exact minibatch tests rest on, coefficients on the user's scale, recipes."""

import json
import math
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import optimize, special, stats

import amagold
from amagold import models
from amagold.acceptance.remainders import remainder_differences
from amagold.mode.reference import Reference
from amagold.mode.search import find_mode
from amagold.models.logistic import Logistic
from amagold.models.normal_tail import log_normal_cdf
from amagold.models.poisson import Example as CountExample
from amagold.models.recipes import build_again, recipe_of
from amagold.models.residuals import LOG_NOISE_SCALE
from amagold.models.softmax import Softmax
from amagold.sampling.recipe import load_recipe, save_recipe
from amagold.store.zarr_store import PRIVATE

GENERATOR = np.random.default_rng(7)
X = GENERATOR.normal(size=(60, 2)).astype(np.float32)
SIGNS = GENERATOR.random(60) < 0.5
CLASSES = GENERATOR.integers(0, 4, 60)
NUMBERS = GENERATOR.standard_t(3, 60).astype(np.float32)
COUNTS = GENERATOR.poisson(2.0, 60)

MAKERS = {
    "logistic": lambda X, **options: models.logistic(X, SIGNS, **options),
    "probit": lambda X, **options: models.probit(X, SIGNS, **options),
    "softmax": lambda X, **options: models.softmax(X, CLASSES, **options),
    "poisson": lambda X, **options: models.poisson(X, COUNTS, **options),
    "linear": lambda X, **options: models.linear(X, NUMBERS, noise_scale=0.7, **options),
    "robust": lambda X, **options: models.robust(X, NUMBERS, noise_scale=0.7, degrees_of_freedom=3.0, **options),
    "linear, unknown noise": lambda X, **options: models.linear(X, NUMBERS, noise_scale=None, **options),
    "robust, unknown noise": lambda X, **options: models.robust(X, NUMBERS, noise_scale=None, degrees_of_freedom=3.0, **options),
}
KNOWN = [name for name in MAKERS if "unknown" not in name]


def wanted_log_likelihoods(name, z, noise_scale=0.7):
    """In float64, by scipy, with all constants."""
    if name == "logistic":
        return special.log_expit(np.where(SIGNS, z, -z))
    if name == "probit":
        return stats.norm.logcdf(np.where(SIGNS, z, -z))
    if name == "softmax":
        return special.log_softmax(z, axis=-1)[np.arange(len(z)), CLASSES]
    if name == "poisson":
        return stats.poisson.logpmf(COUNTS, np.exp(z))
    if name.startswith("linear"):
        return stats.norm.logpdf(NUMBERS, z, noise_scale)
    return stats.t.logpdf(NUMBERS, 3.0, z, noise_scale)


def random_position(target, scale=1.0):
    return jax.tree.map(lambda leaf: (scale * GENERATOR.normal(size=leaf.shape)).astype(np.float32), target.init)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_densities_are_scipys(name, standardize):
    target = MAKERS[name](X, prior_scale=1.5, standardize=standardize)
    rows = np.column_stack([np.ones(60), X]).astype(np.float64)
    found, wanted, priors = [], [], []
    for scale in (0.0, 1.0, 3.0):
        position = random_position(target, scale)
        found.append(np.asarray(target.log_likelihoods(position, target.data)))
        coefficients, noise_scale, noise_prior = position, 0.7, 0.0
        if isinstance(position, dict):
            coefficients, log_scale = position["coefficients"], float(position["log_noise_scale"])
            noise_scale, noise_prior = math.exp(log_scale), stats.norm.logpdf(log_scale, 0.0, LOG_NOISE_SCALE)
        wanted.append(wanted_log_likelihoods(name, rows @ np.asarray(coefficients, np.float64), noise_scale))
        slopes, at_zero = np.asarray(coefficients[1:], np.float64), np.asarray(coefficients[0], np.float64)
        if standardize:
            at_zero = at_zero + X.mean(axis=0) @ slopes
            slopes = (slopes.T * X.std(axis=0)).T
        prior = stats.norm.logpdf(at_zero, 0.0, 1.5).sum() + stats.norm.logpdf(slopes, 0.0, 1.5).sum() + noise_prior
        priors.append((float(target.log_prior(position)), prior))
    # constants that know nothing of the position may be left out, so differences are compared
    found, wanted, priors = np.array(found), np.array(wanted), np.array(priors)
    np.testing.assert_allclose(found[1:] - found[0], wanted[1:] - wanted[0], rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(priors[1:, 0] - priors[0, 0], priors[1:, 1] - priors[0, 1], rtol=1e-5)
    if name in ("logistic", "probit", "softmax"):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", KNOWN)
def test_gradients_are_finite_at_extreme_predictors(name):
    target = MAKERS[name](X)
    outcome, example = target.bounds.outcome, jax.tree.map(lambda leaf: leaf[:4], target.data)
    extremes = [-1e4, -300.0, -30.0, 30.0, 80.0] + ([300.0, 1e4] if name != "poisson" else [])
    for extreme in extremes:
        z = np.full((4, 4) if name == "softmax" else 4, extreme, np.float32)
        if name == "softmax":
            z[:, 1:] = -z[:, 1:]
        value, slope = jax.vmap(jax.value_and_grad(outcome))(z, example)
        assert np.isfinite(value).all()
        assert np.isfinite(slope).all()


def test_large_counts_keep_their_precision():
    count, z = 1_000_000.0, np.float32(math.log(1e6)) + np.linspace(-0.01, 0.01, 101).astype(np.float32)
    outcome = models.poisson(X, COUNTS).bounds.outcome
    found = jax.vmap(lambda z: outcome(z, CountExample(jnp.zeros(1), jnp.float32(count))))(z)
    above = z.astype(np.float64) - math.log(count)
    np.testing.assert_allclose(found, count * (above - np.expm1(above)), atol=0.02)  # y z - exp(z) itself is right to 1 only


def derivatives(function, number):
    for _ in range(number):
        function = (lambda inner: lambda at: jax.jvp(inner, (at,), (jnp.ones_like(at),))[1])(function)
    return function


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "softmax"])
def test_the_constants_bound_the_derivatives_and_are_no_larger_than_needed(name):
    target = MAKERS[name](X)
    outcome, bounds = target.bounds.outcome, target.bounds
    example = jax.tree.map(lambda leaf: leaf[0], target.data)
    grid = np.concatenate([np.linspace(-40.0, 40.0, 80_001), np.linspace(-3.0, 3.0, 60_001)]).astype(np.float32)
    for order in range(3):
        found = np.abs(jax.jit(jax.vmap(derivatives(lambda z: outcome(z, example), order + 1)))(grid))
        if name == "poisson":
            if order:
                np.testing.assert_allclose(found, np.exp(grid), rtol=1e-5)
            continue
        assert found.max() <= bounds.derivatives[order] * (1.0 + 1e-5) + 1e-6
        if math.isfinite(bounds.derivatives[order]):
            assert found.max() >= 0.99 * bounds.derivatives[order]
        else:
            assert order == 0


def softmax_derivatives(z, u, v):
    """|D f|, |D^2 f| and D^3 f[u, u, v] of log sum_k exp(z_k) - z_0: cumulants of the numbers u_k and v_k under the class probabilities."""
    p = special.softmax(z.astype(np.float64), axis=-1)
    slope = p - np.eye(z.shape[-1])[0]
    curvature = p[:, :, None] * np.eye(z.shape[-1]) - p[:, :, None] * p[:, None, :]
    u, v = (each - np.sum(p * each, axis=-1, keepdims=True) for each in (u, v))
    return np.linalg.norm(slope, axis=-1), np.linalg.eigvalsh(curvature)[:, -1], np.sum(p * u * u * v, axis=-1)


def random_logits(num_classes, size=4000):
    """Logits from even to extreme, a quarter with two classes that share the probability, and unit vectors."""
    z = np.array([0.3, 1.0, 3.0, 30.0]).repeat(size // 4)[:, None] * GENERATOR.normal(size=(size, num_classes))
    z[::4, 2:] = -60.0
    u, v = GENERATOR.normal(size=(2, size, num_classes))
    u[::2] = np.eye(num_classes)[0] - np.eye(num_classes)[1]
    v[: size // 2] = u[: size // 2]
    return z.astype(np.float32), *(each / np.linalg.norm(each, axis=-1, keepdims=True) for each in (u, v))


def test_the_constants_of_the_softmax():
    """Operator norms for random and extreme logits; two classes attain them."""
    most = np.zeros(3)
    for num_classes in range(2, 11):
        found = softmax_derivatives(*random_logits(num_classes))
        most = np.maximum(most, [np.abs(each).max() for each in found])
    claimed = np.array(models.softmax(X, CLASSES).bounds.derivatives)
    assert np.all(most <= claimed * (1.0 + 1e-6))
    assert np.all(most >= 0.99 * claimed)


def test_the_softmax_has_these_derivatives():
    z, u, v = random_logits(4, 400)
    example = jax.tree.map(lambda leaf: leaf[0], models.softmax(X, CLASSES).data)._replace(label=jnp.int32(0))

    def energy(z):
        return -Softmax(4)(z, example)

    def third(z, u, v):
        return jax.grad(lambda t: derivatives(lambda s: energy(z + t * v + s * u), 2)(jnp.float32(0.0)))(jnp.float32(0.0))

    slope, _, wanted = softmax_derivatives(z, u, v)
    np.testing.assert_allclose(np.linalg.norm(jax.vmap(jax.grad(energy))(z), axis=-1), slope, atol=1e-5)
    np.testing.assert_allclose(jax.vmap(third)(z, u.astype(np.float32), v.astype(np.float32)), wanted, atol=1e-5)


def test_the_normal_tail_keeps_three_derivatives():
    t = np.linspace(-30.0, 30.0, 6001).astype(np.float32)
    exact, x = t.astype(np.float64), np.maximum(-t.astype(np.float64), 3.0)
    zeta = np.zeros_like(x)
    for level in range(200, 2, -1):
        zeta = level / (x + zeta)
    epsilon = 2.0 / (x + zeta)
    delta = 1.0 / (x + epsilon)
    slope = np.exp(stats.norm.logpdf(exact) - special.log_ndtr(exact))
    far, tail = t < -3.0, x + delta
    wanted = [
        special.log_ndtr(exact),
        np.where(far, tail, slope),
        -np.where(far, tail * delta, slope * (exact + slope)),
        np.where(far, tail * delta**2 * epsilon * (zeta - epsilon), slope * ((exact + slope) * (exact + 2.0 * slope) - 1.0)),
    ]
    for order, tolerance in enumerate((1e-7, 1e-5, 3e-5, 1e-4)):
        found = jax.jit(jax.vmap(derivatives(log_normal_cdf, order)))(t)
        np.testing.assert_allclose(found, wanted[order], rtol=3e-5 if order < 3 else 2e-3, atol=tolerance)
        assert np.all(far == (t < -3.0))
    # the tail's third derivative, where automatic differentiation returns -0.6
    assert abs(float(derivatives(log_normal_cdf, 3)(jnp.float32(-30.0))) - wanted[3][0]) < 1e-3 * wanted[3][0]


def shares_of_the_bounds(target, order, num_pairs=400):
    """|R_i(theta*) - R_i(theta)| / (c_i M) for random pairs of positions, in the Euclidean norm."""
    bounds, data = target.bounds, target.data
    flat, structure = ravel_pytree(target.init)
    generator = np.random.default_rng(order)
    center = 0.3 * generator.normal(size=flat.shape).astype(np.float32)

    @jax.jit
    def shares(here, there):
        def norm(row):
            jacobian = jax.jacrev(lambda at: jnp.atleast_1d(bounds.predictor(structure(at), row)))(flat)
            return jnp.linalg.norm(jacobian, 2)

        norms = jax.vmap(norm)(data)
        scales = 1.0
        if bounds.scale is not None:
            scales = jax.vmap(lambda row: bounds.scale(bounds.predictor(structure(center), row), row))(data)

        def one(here, there):
            distance, reach, other = (jnp.linalg.norm(v) for v in (here - there, here - center, there - center))
            size = bounds.magnitude(order, distance, reach, other, norms.max())
            reference = Reference(structure(center), jnp.zeros_like(flat), None)
            differences = remainder_differences(bounds, reference, order, structure(here), structure(there), data)
            return differences, scales * norms ** (order + 1) * size

        return jax.vmap(one)(here, there)

    sizes = np.exp(generator.uniform(np.log(0.05), np.log(4.0), (2, num_pairs, 1)))
    steps = sizes * generator.normal(size=(2, num_pairs, len(flat)))
    steps[1, ::2] = steps[0, ::2] * generator.uniform(0.8, 1.2, (num_pairs // 2, 1))  # nearly the same place: the sharpest case
    differences, limits = shares(*(center + steps).astype(np.float32))
    return np.abs(differences), np.asarray(limits)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", KNOWN)
def test_remainders_stay_within_their_bounds(name, order):
    target = MAKERS[name](X[:, :1], intercept=False)
    if math.isinf(target.bounds.derivatives[order]):
        with pytest.raises(ValueError, match="order must be another than 0"):
            shares_of_the_bounds(target, order)
        return
    differences, limits = shares_of_the_bounds(target, order)
    if target.bounds.derivatives[order] == 0.0:
        assert differences.max() < 1e-3, "a parabola has no remainder of order 2"
        return
    # a remainder of some units is rounded, which two positions close together do not share
    assert np.all(differences <= 1.001 * limits + 2e-5)
    share = (differences / np.maximum(limits, 1e-3))[limits > 1e-3]
    assert share.max() > 0.3, "the bounds say something"
    if name in ("logistic", "probit", "robust", "linear"):
        assert np.any(differences > 0.5 * limits + 2e-5), "half of the constant is seen to be too small"


@pytest.mark.parametrize("name", ["logistic", "poisson", "softmax"])
def test_bounds_hold_with_several_predictors_and_standardised_ones(name):
    target = MAKERS[name](X * np.array([1.0, 0.1]) + np.array([0.0, 0.5]), standardize=True)
    shifted = amagold.Posterior(target.log_likelihood, target.log_prior, target.data, init=target.init, bounds=target.bounds)
    differences, limits = shares_of_the_bounds(shifted, 1, 50)
    assert np.all(differences <= limits * (1.0 + 1e-3) + 1e-4)


@pytest.mark.parametrize("name", KNOWN)
def test_outcomes_stay_between_their_parabolas(name):
    target = MAKERS[name](X)
    if name in ("softmax", "poisson"):
        assert target.bounds.upper_curvature == 0.0, "concave"
        return
    bounds, example = target.bounds, jax.tree.map(lambda leaf: leaf[0], target.data)
    references, z = np.linspace(-6.0, 6.0, 25, dtype=np.float32), np.linspace(-12.0, 12.0, 481, dtype=np.float32)
    values, slopes = jax.vmap(lambda at: jax.value_and_grad(bounds.outcome)(at, example))(references)
    gaps = jax.vmap(lambda at: bounds.outcome(at, example))(z)[None] - values[:, None] - slopes[:, None] * (z - references[:, None])
    squares = 0.5 * (z - references[:, None]) ** 2
    lower = np.full(25, bounds.derivatives[1])
    if bounds.lower_curvature is not None:
        lower = np.asarray(jax.vmap(lambda at: bounds.lower_curvature(at, example))(references))
    assert np.all(gaps >= -lower[:, None] * squares - 1e-4)
    assert np.all(gaps <= bounds.upper_curvature * squares + 1e-4)
    if bounds.lower_curvature is not None:
        assert np.any(gaps < -0.95 * lower[:, None] * squares - 1e-3), "five in a hundred less would be too little"


def test_coefficients_stay_on_the_users_scale():
    """Columns from thousandths to thousands, far from zero: the mode of the standardised model is the maximum likelihood estimate."""
    generator = np.random.default_rng(3)
    scales = np.array([1e-3, 1.0, 1e3])
    raw = scales * (generator.normal(size=(4000, 3)) + np.array([30.0, -20.0, 10.0]))
    truth = np.array([0.5, -1.0, 0.8]) / scales
    y = generator.random(4000) < special.expit(raw @ truth - raw.mean(axis=0) @ truth + 0.3)
    rows = np.column_stack([np.ones(4000), raw])
    sign = np.where(y, 1.0, -1.0)
    inner = np.column_stack([np.ones(4000), (raw - raw.mean(axis=0)) / raw.std(axis=0)])
    best = optimize.minimize(
        lambda at: -special.log_expit(sign * (inner @ at)).sum(),
        np.zeros(4),
        jac=lambda at: -inner.T @ (sign * special.expit(-sign * (inner @ at))),
    ).x
    slopes = best[1:] / raw.std(axis=0)
    wanted = np.array([best[0] - raw.mean(axis=0) @ slopes, *slopes])
    p = special.expit(rows @ wanted)
    spread = np.sqrt(np.diag(np.linalg.inv(rows.T @ (rows * (p * (1.0 - p))[:, None]))))
    target = models.logistic(raw, y, prior_scale=100.0, standardize=True)
    found = find_mode(target, target.init)
    assert np.abs((np.asarray(found.position) - wanted) / spread).max() < 0.1
    total = np.asarray(target.log_likelihoods(np.asarray(wanted, np.float32), target.data), np.float64).sum()
    assert abs(total - special.log_expit(sign * (rows @ wanted)).sum()) < 0.01


def test_nothing_is_centred_without_an_intercept():
    target = models.linear(X + 5.0, NUMBERS, intercept=False, standardize=True)
    np.testing.assert_allclose(np.mean(np.asarray(target.data.predictors) ** 2, axis=0), 1.0, rtol=1e-5)
    z = target.bounds.predictor(jnp.array([1.0, 2.0]), jax.tree.map(lambda leaf: leaf[0], target.data))
    np.testing.assert_allclose(z, (X[0] + 5.0) @ np.array([1.0, 2.0]), rtol=1e-6)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_equal_settings_do_not_compile_again(name, standardize):
    traces = []

    @jax.jit
    def total(target, position):
        traces.append(1)
        return target.log_likelihoods(position, target.data).sum() + target.log_prior(position)

    for _ in range(2):
        target = MAKERS[name](X, standardize=standardize)
        total(target, target.init)
    assert len(traces) == 1
    total(MAKERS[name](X, prior_scale=3.0, standardize=standardize), target.init)
    assert len(traces) == 2


def test_work_on_the_position_is_not_repeated_for_every_example():
    target = models.softmax(X, CLASSES, standardize=True)
    program = jax.make_jaxpr(jax.vmap(target.bounds.predictor, (None, 0)))(target.init, target.data)

    def outputs(jaxpr):
        for equation in jaxpr.eqns:
            inner = [value.jaxpr for value in equation.params.values() if hasattr(value, "jaxpr")]
            yield from (shape for each in inner for shape in outputs(each))
            yield from [(equation.primitive.name, out.aval.shape) for out in equation.outvars if not inner]

    assert {name for name, shape in outputs(program.jaxpr) if 60 in shape} <= {"dot_general", "transpose"}


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_recipes_build_the_same_model(name, standardize, tmp_path):
    target = MAKERS[name](X, prior_scale=1.5, standardize=standardize)
    settings, arrays = recipe_of(target)
    (tmp_path / PRIVATE).mkdir()
    save_recipe(tmp_path, target)
    for again in (build_again(json.loads(json.dumps(settings)), arrays), load_recipe(tmp_path)):
        assert jax.tree.structure(again) == jax.tree.structure(target)  # all functions, bounds and the form of the position
        jax.tree.map(np.testing.assert_array_equal, again, target)


def test_recipes_of_before_and_of_others():
    target = models.logistic(X, SIGNS, prior_scale=2.0)
    old = {"model": "logistic", "prior_scale": 2.0}
    assert recipe_of(target)[0] == old
    again = build_again(old, {"predictors": np.asarray(target.data.predictors), "sign": np.asarray(target.data.sign)})
    assert again.bounds == target.bounds is not None
    assert recipe_of(amagold.Posterior(target.log_likelihood, lambda position: 0.0, target.data)) is None
    assert recipe_of(amagold.Posterior(lambda position, example: 0.0, target.log_prior, target.data)) is None
    assert recipe_of(amagold.Posterior(target.log_likelihood, target.log_prior, target.data)) is None, "without its bounds it is another"
    with pytest.raises(ValueError, match="must be one of this library's"):
        build_again({"model": "cubic"}, {})


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: models.poisson(X[0], COUNTS), "X must have a row per example"),
        (lambda: models.poisson(np.array([["a"], ["b"]]), [0, 1]), "X must hold numbers"),
        (lambda: models.linear(np.full((3, 1), np.nan), [1, 2, 3]), "X must be finite, got 3"),
        (lambda: models.linear(np.ones((0, 2)), []), "X must have at least one row"),
        (lambda: models.linear(np.ones((3, 0)), [1, 2, 3], intercept=False), "X must have at least one column"),
        (
            lambda: models.linear(np.column_stack([X, np.full(60, 0.1)]), NUMBERS, standardize=True),
            r"column 2 .* stays at 0.1; drop it, the int",
        ),
        (lambda: models.linear(np.zeros((60, 1)), NUMBERS, intercept=False, standardize=True), "column 0 .* stays at 0; drop it$"),
        (lambda: models.linear(np.add(X, [0.0, 1e5]), NUMBERS, standardize=True), "column 1 .* subtract a round number from it"),
        (lambda: models.linear(X, NUMBERS[:5]), "y must have one outcome for each of the 60 rows of X, got shape"),
        (lambda: models.linear(X, np.where(SIGNS, np.inf, 0.0)), r"y must hold finite numbers, got \[inf\]"),
        (lambda: models.linear(X, NUMBERS, noise_scale=0.0), "noise_scale must be a finite number above 0"),
        (lambda: models.linear(X, NUMBERS, prior_scale=-1.0), "prior_scale must be a finite number above 0"),
        (lambda: models.robust(X, NUMBERS, degrees_of_freedom=0.0), "degrees_of_freedom must be a finite number above 0"),
        (lambda: models.probit(X, CLASSES), "y must hold 0 and 1"),
        (lambda: models.probit(X, np.where(SIGNS, "yes", "no")), "y must hold 0 and 1 .*'no', 'yes'"),
        (lambda: models.softmax(X, NUMBERS), "y must hold classes as whole numbers from 0"),
        (lambda: models.softmax(X, CLASSES - 1), "y must hold classes as whole numbers from 0"),
        (lambda: models.softmax(X, CLASSES, num_classes=3), "num_classes must be at least 4, because y holds the class 3"),
        (lambda: models.softmax(X, np.zeros(60, int)), "num_classes must be a whole number of at least 2"),
        (lambda: models.poisson(X, NUMBERS), "y must hold counts, whole numbers from 0"),
        (lambda: models.poisson(X, -COUNTS), "y must hold counts, whole numbers from 0"),
    ],
)
def test_bad_tables(build, sentence):
    with pytest.raises(ValueError, match=sentence):
        build()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")  # a few draws only
def test_examples_in_the_document_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (Path(__file__).parent.parent / "docs" / "models.md").read_text(), flags=re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, "models.md", "exec"), names)
    assert len(blocks) >= 3
    assert "exact" in capsys.readouterr().out


def test_odd_but_right_tables():
    assert models.softmax(X, CLASSES.astype(float), num_classes=6).init.shape == (3, 6)
    assert models.logistic(X > 0, np.where(SIGNS, 1, -1).astype(object)).init.shape == (3,)
    assert models.poisson(np.ones((60, 0)), COUNTS, standardize=True).init.shape == (1,)
    constant = models.linear(np.column_stack([np.ones(60), X]), NUMBERS, intercept=False, standardize=True)
    np.testing.assert_array_equal(constant.data.predictors[:, 0], 1.0)
    table = X.copy()
    target = models.linear(table, NUMBERS, intercept=False)
    table[:] = 0.0
    np.testing.assert_array_equal(target.data.predictors, X)  # the model keeps a copy of its own
    assert Logistic() == Logistic()
