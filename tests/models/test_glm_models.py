"""Ready-made regressions: their densities, coefficients on the user's scale, recipes."""

import json
import math
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
from regressions import (
    CLASSES,
    COUNTS,
    FAMILIES,
    KNOWN,
    MAKERS,
    MOVED,
    NUMBERS,
    SIGNS,
    TWO_NUMBERS,
    X,
    on_users_scale,
    random_position,
    wanted_log_likelihoods,
)
from scipy import optimize, special, stats

import amagold
from amagold import models
from amagold.mode._mode_search import find_mode
from amagold.models._logistic import Logistic
from amagold.models._poisson import CountExample
from amagold.models._priors import CoefficientPrior
from amagold.models._recipes import build_again, recipe_of
from amagold.sampling._stored_recipe import load_recipe, save_recipe
from amagold.store._zarr_store import PRIVATE

DATES = np.datetime64("2020-01-01") + np.arange(60)[:, None]


def default_widths(name):
    """(w, center, scale) of the priors scaled by the data, and log of the outcomes' spread, as
    docs/models.md has them.
    """
    if name.startswith("linear"):
        return 2.5 * NUMBERS.std(), NUMBERS.mean(), 2.5 * NUMBERS.std(), np.log(NUMBERS.std())
    if name.startswith("robust"):
        spread = 1.4826 * np.median(np.abs(NUMBERS - np.median(NUMBERS)))
        return 2.5 * spread, np.median(NUMBERS), 2.5 * spread, np.log(spread)
    return 1.0, FAMILIES[name].link(FAMILIES[name].y.mean()), 2.5, None


def wanted_log_prior(name, table, reported, prior_scale, is_on_columns):
    """In float64, by scipy, of coefficients on the user's scale."""
    width, center, scale, log_spread = default_widths(name)
    noise = 0.0
    if isinstance(reported, dict):
        noise = stats.norm.logpdf(reported["log_noise_scale"], log_spread, 2.0)
        reported = reported["coefficients"]
    intercept, slopes = np.asarray(reported[0], np.float64), np.asarray(reported[1:], np.float64)
    if prior_scale is not None:
        width, center, scale = prior_scale, 0.0, prior_scale
    if is_on_columns:
        intercept = intercept + table.mean(axis=0, dtype=np.float64) @ slopes
        slopes = (slopes.T * table.std(axis=0, dtype=np.float64)).T
    return (
        stats.norm.logpdf(intercept, center, scale).sum()
        + stats.norm.logpdf(slopes, 0.0, width).sum()
        + noise
    )


def test_every_model_has_a_row():
    # those with files of tests of their own
    others = {"double_well", "linear", "network", "ordinal", "robust", "mixed", "Group"}
    others |= TWO_NUMBERS.keys()
    missing = set(models.__all__) - others - FAMILIES.keys()
    assert not missing, f"add a row to tests/helpers/regressions.py for {missing}"


@pytest.mark.parametrize(
    ("table", "standardize", "prior_scale"),
    [(X, False, 1.5), (X, True, 1.5), (X, False, None), (MOVED, None, None), (MOVED, None, 1.5)],
    ids=["as they are", "standardised", "default priors", "moved", "moved, given prior"],
)
@pytest.mark.parametrize("name", MAKERS)
def test_densities_are_scipys(name, table, standardize, prior_scale):
    target = MAKERS[name](table, prior_scale=prior_scale, standardize=standardize)
    assert (target.transform is not None) == (standardize is not False)
    rows = np.column_stack([np.ones(60), table]).astype(np.float64)
    found, wanted, priors = [], [], []
    for scale in (0.0, 1.0, 3.0):
        position = random_position(target, scale)
        found.append(np.asarray(target.log_likelihoods(position, target.data)))
        if target.num_examples < len(rows):  # sums stand for the rows
            found[-1] = found[-1].sum(keepdims=True)
        reported = on_users_scale(target, position)
        coefficients, noise_scale = reported, 0.7
        if isinstance(reported, dict):
            coefficients, noise_scale = (
                reported["coefficients"],
                math.exp(reported["log_noise_scale"]),
            )
        wanted.append(
            wanted_log_likelihoods(name, rows @ np.asarray(coefficients, np.float64), noise_scale)
        )
        of_prior = wanted_log_prior(
            name, table, reported, prior_scale, prior_scale is None or bool(standardize)
        )
        priors.append((float(target.log_prior(position)), of_prior))
    if target.num_examples < len(rows):
        wanted = [each.sum(keepdims=True) for each in wanted]
    # constants that know nothing of the position may be left out, so differences are compared
    found, wanted, priors = np.array(found), np.array(wanted), np.array(priors)
    np.testing.assert_allclose(found[1:] - found[0], wanted[1:] - wanted[0], rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(
        priors[1:, 0] - priors[0, 0], priors[1:, 1] - priors[0, 1], rtol=2e-5
    )
    if name in FAMILIES and name != "poisson":
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", MAKERS)
def test_the_way_to_the_users_scale_and_back(name):
    target = MAKERS[name](MOVED)
    positions = jax.tree.map(
        lambda leaf: np.random.default_rng(0).normal(size=(3, 2, *leaf.shape)), target.init
    )
    again = target.transform.inverse(target.transform(positions))
    jax.tree.map(
        lambda before, after: np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9),
        positions,
        again,
    )
    traced = jax.jit(jax.vmap(jax.vmap(lambda transform, at: transform(at), (None, 0)), (None, 0)))(
        target.transform, positions
    )
    jax.tree.map(
        lambda here, there: np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-3),
        target.transform(positions),
        traced,
    )


@pytest.mark.parametrize("name", KNOWN)
def test_gradients_are_finite_at_extreme_predictors(name):
    target = MAKERS[name](X)
    outcome, example = target.bounds.outcome, jax.tree.map(lambda leaf: leaf[:4], target.data)
    # one that grows like exp(z) is infinite in float32 from 89 on
    extremes = [-1e4, -300.0, -30.0, 30.0, 80.0] + ([] if target.bounds.growth else [300.0, 1e4])
    for extreme in extremes:
        z = np.full((4, 4) if name == "softmax" else 4, extreme, np.float32)
        if name == "softmax":
            z[:, 1:] = -z[:, 1:]
        value, slope = jax.vmap(jax.value_and_grad(outcome))(z, example)
        assert np.isfinite(value).all()
        assert np.isfinite(slope).all()


def test_large_counts_keep_their_precision():
    count, z = (
        1_000_000.0,
        np.float32(math.log(1e6)) + np.linspace(-0.01, 0.01, 101).astype(np.float32),
    )
    outcome = models.poisson(X, COUNTS).bounds.outcome
    found = jax.vmap(lambda z: outcome(z, CountExample(jnp.zeros(1), jnp.float32(count))))(z)
    above = z.astype(np.float64) - math.log(count)
    # y z - exp(z) itself is right to 1 only
    np.testing.assert_allclose(found, count * (above - np.expm1(above)), atol=0.02)


def test_coefficients_stay_on_the_users_scale():
    """Columns from thousandths to thousands, far from zero: the mode of the standardised model is
    the maximum likelihood estimate.
    """
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
    assert np.abs((on_users_scale(target, found.position) - wanted) / spread).max() < 0.1
    total = np.asarray(
        target.log_likelihoods(target.transform.inverse(wanted).astype(np.float32), target.data),
        np.float64,
    ).sum()
    assert abs(total - special.log_expit(sign * (rows @ wanted)).sum()) < 0.01


def test_nothing_is_centred_without_an_intercept():
    target = models.linear(X + 5.0, NUMBERS, intercept=False, noise_scale=1.0, standardize=True)
    np.testing.assert_allclose(
        np.mean(np.asarray(target.data.predictors) ** 2, axis=0), 1.0, rtol=1e-5
    )
    z = target.bounds.predictor(
        target.transform.inverse(np.array([1.0, 2.0])),
        jax.tree.map(lambda leaf: leaf[0], target.data),
    )
    np.testing.assert_allclose(z, (X[0] + 5.0) @ np.array([1.0, 2.0]), rtol=1e-6)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_other_numbers_do_not_compile_again(name, standardize):
    """Neither another table of the same shape, nor other priors: all numbers are traced."""
    traces = []

    @jax.jit
    def total(target, position):
        traces.append(1)
        return target.log_likelihoods(position, target.data).sum() + target.log_prior(position)

    first = MAKERS[name](X, standardize=standardize)
    others = [MAKERS[name](table, standardize=standardize) for table in (X, 2.0 * X + 1.0)]
    found = [float(total(target, target.init)) for target in (first, *others)]
    assert len(traces) == 1
    assert found[0] == found[1]
    given = [MAKERS[name](X, prior_scale=scale, standardize=standardize) for scale in (1.0, 3.0)]
    assert (
        len({float(total(target, jax.tree.map(jnp.ones_like, target.init))) for target in given})
        == 2
    )
    # a given prior speaks of another intercept, and is another program once
    assert len(traces) <= 2


def test_work_on_the_position_is_not_repeated_for_every_example():
    target = models.softmax(X, CLASSES, standardize=True)
    program = jax.make_jaxpr(jax.vmap(target.bounds.predictor, (None, 0)))(target.init, target.data)

    def outputs(jaxpr):
        for equation in jaxpr.eqns:
            inner = [value.jaxpr for value in equation.params.values() if hasattr(value, "jaxpr")]
            yield from (shape for each in inner for shape in outputs(each))
            yield from [
                (equation.primitive.name, out.aval.shape) for out in equation.outvars if not inner
            ]

    assert {name for name, shape in outputs(program.jaxpr) if 60 in shape} <= {
        "dot_general",
        "transpose",
    }


@pytest.mark.parametrize(
    ("table", "settings"),
    [(X, {"prior_scale": 1.5}), (X, {}), (MOVED, {})],
    ids=["given", "default", "moved"],
)
@pytest.mark.parametrize("name", MAKERS)
def test_recipes_build_the_same_model(name, table, settings, tmp_path):
    target = MAKERS[name](table, **settings)
    settings, arrays = recipe_of(target)
    (tmp_path / PRIVATE).mkdir()
    save_recipe(tmp_path, target)
    for again in (build_again(json.loads(json.dumps(settings)), arrays), load_recipe(tmp_path)):
        # all functions, bounds and the form of the position
        assert jax.tree.structure(again) == jax.tree.structure(target)
        jax.tree.map(np.testing.assert_array_equal, again, target)
        assert again.notes == target.notes


def test_recipes_of_others():
    target = models.logistic(X, SIGNS, prior_scale=2.0)
    assert recipe_of(target)[0]["model"] == "logistic"
    assert (
        recipe_of(amagold.Posterior(target.log_likelihood, lambda position: 0.0, target.data))
        is None
    )
    assert (
        recipe_of(amagold.Posterior(lambda position, example: 0.0, target.log_prior, target.data))
        is None
    )
    assert (
        recipe_of(amagold.Posterior(target.log_likelihood, target.log_prior, target.data)) is None
    ), "without its bounds it is another"
    with pytest.raises(ValueError, match="must be one of this library's"):
        build_again({"model": "cubic"}, {})


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: models.poisson(X[0], COUNTS), "X must have a row per example"),
        (lambda: models.poisson(np.array([["a"], ["b"]]), [0, 1]), "X must hold numbers"),
        (lambda: models.linear(np.full((3, 1), np.nan), [1, 2, 3]), "X must be finite, got 3"),
        (lambda: models.linear(np.ones((0, 2)), []), "X must have at least one row"),
        (
            lambda: models.linear(np.ones((3, 0)), [1, 2, 3], intercept=False),
            "X must have at least one column",
        ),
        (
            lambda: models.linear(
                np.column_stack([X, np.full(60, 0.1)]), NUMBERS, standardize=True
            ),
            r"column 2 .* stays at 0.1; drop it, the int",
        ),
        (
            lambda: models.linear(np.zeros((60, 1)), NUMBERS, intercept=False, standardize=True),
            "column 0 .* stays at 0; drop it$",
        ),
        (
            lambda: models.linear(np.add(X, [0.0, 1e5]), NUMBERS, standardize=False),
            "column 1 .* subtract a round number from it",
        ),
        (
            lambda: models.linear(np.add(X, [0.0, 1e5]), NUMBERS, intercept=False),
            "column 1 .* add an intercept",
        ),
        (
            lambda: models.linear(np.add(X, [0.0, 1e5]), NUMBERS, prior_scale=1.0),
            "column 1 .* prior_scale would speak of an intercept",
        ),
        (
            lambda: models.linear(X, NUMBERS + 1e8, standardize=False),
            "y must have a mean within 4096 standard deviations of zero",
        ),
        (
            lambda: models.linear(X, NUMBERS, standardize="yes"),
            "standardize must be True, False or None",
        ),
        (
            lambda: models.linear(np.ma.masked_greater(X, 1.0), NUMBERS),
            "X must have no masked values, got",
        ),
        (
            lambda: models.linear(X, np.ma.masked_greater(NUMBERS, 1.0)),
            "y must have no masked values, got",
        ),
        (
            lambda: models.linear(DATES, NUMBERS),
            r"X must hold numbers, got times \(datetime64\[D\]\); turn them into numbers",
        ),
        (lambda: models.linear(X, DATES[:, 0]), r"y must hold numbers, got times"),
        (
            lambda: models.linear(pandas.DataFrame({"a": X[:, 0], "when": DATES[:, 0]}), NUMBERS),
            "X's column 'when' must hold numbers, got Timestamp",
        ),
        (
            lambda: models.linear(pandas.DataFrame({"a": [1, None] * 30}, dtype="Int64"), NUMBERS),
            "30",
        ),  # NaN or missing, by its version
        (
            lambda: models.linear(X, pandas.Series([1.5, None] * 30, dtype="Float64")),
            "y must .*; drop or impute",
        ),
        (
            lambda: models.linear(X, np.array([1.5, None] * 30)),
            "y must have no missing values, got 30",
        ),
        (
            lambda: models.linear([[1.0, 2.0], [3.0]], [0.0, 1.0]),
            "X must be an array of numbers .*; give rows of one length",
        ),
        (
            lambda: models.linear(X, NUMBERS[:5]),
            "y must have one outcome for each of the 60 rows of X, got shape",
        ),
        (
            lambda: models.linear(X, np.where(SIGNS, np.inf, 0.0)),
            r"y must hold finite numbers, got \[inf\]",
        ),
        (
            lambda: models.linear(X, NUMBERS, noise_scale=0.0),
            "noise_scale must be a finite number above 0",
        ),
        (
            lambda: models.linear(X, NUMBERS, prior_scale=-1.0),
            "prior_scale must be a finite number above 0",
        ),
        (
            lambda: models.robust(X, NUMBERS, degrees_of_freedom=0.0),
            "degrees_of_freedom must be a finite number above 0",
        ),
        (lambda: models.probit(X, CLASSES), "y must hold 0 and 1"),
        (
            lambda: models.probit(X, np.where(SIGNS, "yes", "no")),
            "y must hold 0 and 1 .*'no', 'yes'",
        ),
        (lambda: models.softmax(X, NUMBERS), "y must hold classes as whole numbers from 0"),
        (lambda: models.softmax(X, CLASSES - 1), "y must hold classes as whole numbers from 0"),
        (
            lambda: models.softmax(X, CLASSES + 1),
            r"y must hold every class from 0 to 4, but no 0 is among its \[1, 2, 3, 4\]; number "
            r"them with .* or give num_classes=5",
        ),
        (lambda: models.softmax(X, 2 * CLASSES), r"but no 1 is among its \[0, 2, 4, 6\]"),
        (
            lambda: models.softmax(X, CLASSES, num_classes=3),
            "num_classes must be at least 4, because y holds the class 3",
        ),
        (
            lambda: models.softmax(X, np.zeros(60, int)),
            "num_classes must be a whole number of at least 2",
        ),
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
    blocks = re.findall(
        r"```python\n(.*?)```",
        (Path(__file__).parent.parent.parent / "docs" / "models.md").read_text(),
        flags=re.DOTALL,
    )
    names = {}
    for block in blocks:
        exec(compile(block, "models.md", "exec"), names)
    assert len(blocks) >= 3
    assert "exact" in capsys.readouterr().out


def test_odd_but_right_tables():
    assert models.softmax(X, CLASSES.astype(float), num_classes=6).init.shape == (3, 6)
    assert models.logistic(X > 0, np.where(SIGNS, 1, -1).astype(object)).init.shape == (3,)
    assert models.poisson(np.ones((60, 0)), COUNTS, standardize=True).init.shape == (1,)
    constant = models.linear(
        np.column_stack([np.ones(60), X]),
        NUMBERS,
        intercept=False,
        standardize=True,
        noise_scale=1.0,
    )
    np.testing.assert_array_equal(constant.data.predictors[:, 0], 1.0)
    table = X.copy()
    target = models.robust(table, NUMBERS, intercept=False)
    table[:] = 0.0
    np.testing.assert_array_equal(target.data.predictors, X)  # the model keeps a copy of its own
    assert Logistic() == Logistic()


def test_the_words_of_a_prior_are_no_format_string():
    hostile = "{0.__class__} {0:99999999999d} {9:.4g} and {1:.4g}"
    prior = CoefficientPrior(
        center=jnp.zeros(1),
        scale=jnp.ones(1),
        offsets=None,
        figures=jnp.array([1.0, 2.5]),
        words=hostile,
    )
    assert prior.sentences() == ("{0.__class__} {0:99999999999d} {9:.4g} and 2.5",)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", MAKERS)
def test_outcomes_to_expect(name):
    """The log density has all constants, and mean and draws are its own."""
    target = MAKERS[name](X, standardize=False)
    outcome = target.log_likelihood.outcome
    position = random_position(target, 0.5)
    z = jnp.column_stack([jnp.ones(60), X]) @ (
        position["coefficients"] if isinstance(position, dict) else position
    )
    if isinstance(position, dict):
        z = jnp.stack([z, jnp.full(60, position["log_noise_scale"])], axis=1)
    y = FAMILIES[name].y if name in FAMILIES else NUMBERS
    scale = 0.7 if not isinstance(position, dict) else np.exp(position["log_noise_scale"])
    plain = z[:, 0] if isinstance(position, dict) else z
    np.testing.assert_allclose(
        outcome.log_density(jnp.asarray(y, jnp.float32), z),
        wanted_log_likelihoods(name, np.asarray(plain, np.float64), scale),
        rtol=1e-4,
        atol=1e-5,
    )
    num_draws = 20_000
    many = jnp.broadcast_to(z[:3], (num_draws, *z[:3].shape))
    drawn, mean = outcome.draw(jax.random.key(1), many), outcome.mean(z[:3])
    if name == "softmax":
        drawn = jax.nn.one_hot(drawn, mean.shape[-1])
    error = drawn.std(axis=0) / num_draws**0.5
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5.0 * error + 1e-6)
    moved = outcome.mean((z + 0.2 if z.ndim == 1 else z.at[:, 0].add(0.2))[:3])
    assert np.any(np.abs(drawn.mean(axis=0) - moved) > 5.0 * error)
