"""The user's own functions: what they may return, what their errors say, and what happens when the
world around them changes.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amagold
from amagold.core import trees

DATA = np.arange(5.0)
WIDTH = 2.0
CALLS = 0


def log_likelihood(position, example):
    return -0.5 * (position - example) ** 2


def log_prior(position):
    return -0.5 * (position / WIDTH) ** 2


def started(log_prior=log_prior, **parts):
    """A sampler's first state: what every function is traced for."""
    target = amagold.Posterior(
        **{"log_likelihood": log_likelihood, "log_prior": log_prior, "data": DATA, **parts}
    )
    return amagold.hmc(target, step_size=0.1).init(0.5)


@pytest.mark.parametrize(
    "nothing",
    [0.0, 0, np.float64(0.0), np.int64(0), jnp.float32(0.0)],
    ids=lambda value: type(value).__name__,
)
def test_a_function_may_return_a_plain_number(nothing):
    flat = amagold.Posterior(log_likelihood, lambda position: nothing, DATA, init=0.0)
    assert amagold.energy_difference(flat, 1.0, 0.0) == pytest.approx(-7.5)
    # gradient, test and curvature: whatever a plan needs
    for sampler in (
        amagold.hmc(flat, step_size=0.1),
        amagold.amagold(flat, step_size=0.1, batch_size=2),
    ):
        state, info = sampler.step(jax.random.key(0), sampler.init(0.5))
        assert np.isfinite(state.position)
        assert np.isfinite(info.log_ratio)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_flat_prior_is_sampled_and_a_constant_likelihood_too():
    flat = amagold.Posterior(log_likelihood, lambda position: 0.0, DATA, init=0.0)
    run = amagold.sample(flat, 2000, 200, progress=False)
    draws = run.posterior["theta"].values
    assert abs(draws.mean() - 2.0) < 0.1
    assert abs(draws.std() - 5**-0.5) < 0.05
    silent = amagold.Posterior(lambda position, example: 0, log_prior, DATA, init=0.0)
    assert (
        abs(
            amagold.sample(silent, 2000, 200, progress=False).posterior["theta"].values.std()
            - WIDTH
        )
        < 0.2
    )


@pytest.mark.parametrize(
    ("broken", "sentence", "cause"),
    [
        (
            {"log_prior": lambda at: -np.exp(at)},
            "log_prior must be written for JAX.* use jax.numpy",
            jax.errors.TracerArrayConversionError,
        ),
        (
            {"log_prior": lambda at: -at if at > 0 else at},
            "log_prior .* choose with jnp.where",
            jax.errors.TracerBoolConversionError,
        ),
        (
            {"log_prior": lambda at: float(at)},
            "log_prior .* makes a Python number",
            jax.errors.ConcretizationTypeError,
        ),
        (
            {"log_prior": lambda at: math.exp(at)},
            "log_prior .* makes a Python number",
            jax.errors.ConcretizationTypeError,
        ),
        (
            {"log_prior": lambda at: at[jnp.isfinite(at)].sum()},
            "log_prior .* use jnp.where",
            jax.errors.NonConcreteBooleanIndexError,
        ),
        (
            {"log_prior": lambda at: {}["tau"]},
            r"log_prior\(position\) must work for position = float32\[\], but .* KeyError: 'tau'",
            KeyError,
        ),
        (
            {"log_likelihood": lambda at, row: row["x"]},
            r"log_likelihood\(position, example\) must work for .* example = float32\[\]",
            None,
        ),
        (
            {"domain": lambda at: at > 0 and at < 1},
            "domain .* join conditions with & and",
            jax.errors.TracerBoolConversionError,
        ),
        (
            {"domain": lambda at: 1 / 0},
            r"domain\(position\) must work for .* ZeroDivisionError",
            ZeroDivisionError,
        ),
        ({"log_prior": lambda at: None}, "log_prior must return one number, got NoneType", None),
        (
            {"log_prior": lambda at: True},
            "log_prior must return a floating-point number, got bool",
            None,
        ),
    ],
)
def test_errors_in_functions_come_with_a_sentence(broken, sentence, cause):
    with pytest.raises(ValueError, match=sentence) as found:
        started(**broken)
    if cause is not None:
        assert isinstance(found.value.__cause__, cause), "the user's own error must not be lost"


def test_a_density_has_its_sentence_too():
    with pytest.raises(ValueError, match="log_density must be written for JAX"):
        amagold.hmc(amagold.Density(lambda at: -np.log(at)), step_size=0.1).init(1.0)


def test_swapped_arguments_are_noticed():
    swapped = amagold.Posterior(
        lambda row, at: -0.5 * (at["mean"] - row["x"]) ** 2,
        lambda at: 0.0,
        {"x": DATA},
        init={"mean": 0.0},
    )
    with pytest.raises(
        ValueError,
        match=r"in the order log_likelihood\(position, example\), but works only with them swapped",
    ):
        amagold.hmc(swapped, step_size=0.1).init(swapped.init)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (np.array([3_000_000_000, 1]), "data must fit in int32, got 3000000000; subtract"),
        ({"id": np.array([-3_000_000_000, 1])}, r"data\['id'\] must fit in int32, got -3000000000"),
        (np.array([2**40], np.uint64), "data must fit in uint32, got 1099511627776"),
        (
            1e8 + np.random.default_rng(0).normal(size=50),
            "data must be told apart in float32, but .* subtract a round number",
        ),
        (np.column_stack([DATA, 1e9 + DATA]), r"data\[..., 1\] must be told apart in float32"),
        (np.array([1e300, 0.0]), "data must be told apart in float32"),
        (np.array([1e-50, 2e-50]), "data must be told apart in float32"),
        (
            (DATA, np.ma.masked_greater(DATA, 3.0)),
            r"data\[1\] must have no masked values, got 1; drop or impute",
        ),
        (np.array(["2020-01-01", "NaT"], "datetime64[D]"), "data must hold numbers, got times"),
        (np.array(["a", "b"]), "data must hold numbers, got <U1; code it as numbers first"),
        (np.array([1, "b"], object), "data must hold numbers, got str"),
        (np.array([1.0, None]), "data must have no missing values, got 1"),
        ("data.csv", "data must hold numbers, got <U8"),
        (
            [[1.0, 2.0], [3.0, 4.0]],
            "data must be an array, got a list of lists, which may be rows or columns",
        ),
        (
            [1.0, DATA],
            r"data\[0\] must be an array with the examples along its first axis, got 1.0",
        ),
    ],
)
def test_data_that_would_be_cut_or_made_up(data, sentence):
    with pytest.raises(ValueError, match=sentence):
        amagold.Posterior(log_likelihood, log_prior, data)


def test_data_that_are_fine():
    for data in (
        [1, 2, 3],
        {"x": [1.5, 2.5]},
        ([1, 2], [3.0, 4.0]),
        np.full(4, 0.1),
        np.array([2**31 - 1]),
        np.array([1, 2.5], object),
    ):
        target = amagold.Posterior(log_likelihood, log_prior, data)
        assert all(
            isinstance(leaf, jax.Array) and leaf.ndim == 1 for leaf in jax.tree.leaves(target.data)
        )
    unmasked = np.ma.array(DATA, mask=False)
    np.testing.assert_array_equal(amagold.Posterior(log_likelihood, log_prior, unmasked).data, DATA)


@pytest.mark.parametrize(
    ("init", "sentence"),
    [
        ("zeros", "init must hold numbers, got <U5"),
        ({"a": object()}, r"init\['a'\] must hold numbers, got object"),
        (np.ma.masked_less(DATA, 1.0), "init must have no masked values"),
        (np.array(["2020-01-01"], "datetime64[D]"), "init must hold numbers, got times"),
    ],
)
def test_starts_without_numbers(init, sentence):
    with pytest.raises(ValueError, match=sentence):
        amagold.Posterior(log_likelihood, log_prior, DATA, init=init)


def difference(prior):
    return amagold.energy_difference(amagold.Posterior(log_likelihood, prior, DATA), 1.0, 0.0)


class Prior:
    def __init__(self, width):
        self.width, self.calls = width, 0

    def __call__(self, position):
        self.calls += 1
        return -0.5 * (position / self.width) ** 2


def closed_over(width):
    values = np.array([width])
    return values, lambda position: -0.5 * jnp.sum((position / values) ** 2)


def of_a_helper(width):
    prior = Prior(width)
    return prior, lambda position: prior(position)


def of_attributes(width):
    prior = Prior(width)
    return prior, prior


def of_a_default(width):
    values = np.array([width])
    return values, functools.partial(
        lambda values, position: -0.5 * jnp.sum((position / values) ** 2), values
    )


@pytest.mark.parametrize("make", [closed_over, of_a_helper, of_attributes, of_a_default])
def test_what_a_function_reads_is_part_of_it(make):
    """The same function that reads another number: a target built anew is traced anew, one built
    before says what changed.
    """
    holder, prior = make(2.0)
    before = amagold.Posterior(log_likelihood, prior, DATA)
    sampler = amagold.hmc(before, step_size=0.1)
    assert difference(prior) == pytest.approx(-7.5 + 0.5 / 4.0)
    sampler.init(0.5)
    sampler.init(0.5)  # its own counter of calls is no change
    if isinstance(holder, Prior):
        holder.width = 1.0
        assert difference(prior) == pytest.approx(-7.5 + 0.5)
    else:
        holder[0] = 1.0
        # JAX would not look into the array again
        with pytest.raises(
            ValueError,
            match=r"log_prior reads .*, an array that was changed in place.*; make a new array",
        ):
            difference(prior)
    with pytest.raises(
        ValueError, match=r"log_prior reads .*, which has changed since the target was built"
    ):
        sampler.init(0.5)


def test_globals_are_watched(monkeypatch):
    before = amagold.hmc(amagold.Posterior(log_likelihood, log_prior, DATA), step_size=0.1)
    assert difference(log_prior) == pytest.approx(-7.5 + 0.5 / 4.0)
    monkeypatch.setitem(globals(), "WIDTH", 1.0)
    assert difference(log_prior) == pytest.approx(-7.5 + 0.5)
    with pytest.raises(
        ValueError, match="log_prior reads WIDTH, which has changed since the target was built"
    ):
        before.init(0.5)


def counting(position):
    global CALLS
    CALLS += 1
    return -0.5 * position**2


def test_an_energy_difference_notices_what_has_changed(monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", 1.0)
    target = amagold.Density(lambda at: -SCALE * jnp.sum(at**2))  # noqa: F821
    a, b = np.array([2.0], np.float32), np.array([1.0], np.float32)
    assert amagold.energy_difference(target, a, b) == pytest.approx(3.0)
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    with pytest.raises(ValueError, match="log_density reads SCALE, which has changed"):
        amagold.energy_difference(target, a, b)


def test_a_function_that_counts_its_calls_is_left_alone():
    seen = []
    for prior in (counting, lambda position: (seen.append(1), -0.5 * position**2)[1]):
        sampler = amagold.hmc(amagold.Posterior(log_likelihood, prior, DATA), step_size=0.1)
        sampler.init(0.5)
        sampler.init(0.25)
    assert CALLS
    assert seen


def test_one_function_is_compiled_once():
    traces = []

    def prior(position):
        traces.append(1)
        return -0.5 * position**2

    for shift in range(3):
        amagold.energy_difference(amagold.Posterior(log_likelihood, prior, DATA + shift), 1.0, 0.0)
    # at both ends, in one trace, and two looks at the form of each target
    assert len(traces) <= 2 + 2 * 3


def test_a_record_of_arrays_may_stand_for_a_function():
    """Its arrays are traced: other numbers compile nothing."""
    traces = []

    @trees.record()
    class Traced:
        width: jax.Array

        def __call__(self, position):
            traces.append(1)
            return -0.5 * (position / self.width) ** 2

    found = [difference(Traced(jnp.float32(width))) for width in (2.0, 1.0)]
    np.testing.assert_allclose(found, [-7.5 + 0.5 / 4.0, -7.5 + 0.5])
    assert len(traces) <= 2 + 2 * 2  # and two looks at the form of each
