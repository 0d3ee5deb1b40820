"""The approximate minibatch tests: exact on all data, near enough with a small error, visibly wrong
with a large one, and labelled.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from doubles import some_of
from exact_target import (
    COUNTS,
    PREDICTORS,
    exact_draws,
    features,
    log_likelihood as one_log_likelihood,
    log_prior,
    move,
)
from false_alarms import PLANTED, worst
from scipy.optimize import nnls
from scipy.special import expit, ndtr
from scipy.stats import t

import amagold
from amagold import acceptance, gradients
from amagold.acceptance._differences import differences_of
from amagold.acceptance._logistic_correction import BOTH_SIDES, correction
from amagold.acceptance._random_order import random_order
from amagold.acceptance._sequential_sampling import schedule
from amagold.trajectory import RandomWalk

CENTER = np.array([0.1, 0.5], np.float32)
COPIES = 32


def log_likelihood(position, example):
    """A 32nd of an example's: with 32 copies of each, the posterior is that of exact_target.py,
    spread over 256 examples.
    """
    return one_log_likelihood(position, example) / COPIES


def target():
    return amagold.Posterior(
        log_likelihood, log_prior, (np.tile(PREDICTORS, (COPIES, 1)), np.tile(COUNTS, COPIES))
    )


# the truth, and a center near enough to the mode
COEFFICIENTS = np.array([1.0, -1.0, 0.5, 0.0, 2.0], np.float32)
NOTHING = 1e-300  # an error so small that no test ends early


def logistic(num_examples):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(num_examples, 5)).astype(np.float32)
    return amagold.models.logistic(
        X,
        generator.random(num_examples) < expit(X @ COEFFICIENTS),
        prior_scale=1.0,
        intercept=False,
    )


def pairs_of(num_examples, num_pairs, spread):
    """Pairs of positions about the center, further apart than posterior draws for a spread above 2
    or so.
    """
    away = spread / np.sqrt(num_examples) * np.random.default_rng(1).normal(size=(2, num_pairs, 5))
    return tuple(jnp.asarray(COEFFICIENTS + side, jnp.float32) for side in away)


@jax.jit
def decide_all(test, posterior, here, there, keys):
    """Decisions on all pairs, and those of the test over all data with the same uniform numbers."""
    full = acceptance.full()

    def one(position, proposed, key):
        draws = test.draw(key)
        work = 0.3 * jax.random.normal(key)
        decision = test.decide(posterior, draws, test.remember(posterior, position), proposed, work)
        log_uniform = draws[0] if len(draws) == 2 else jnp.log1p(-draws[1])
        return decision, full.decide(
            posterior, log_uniform, full.remember(posterior, position), proposed, work
        )

    return jax.vmap(one)(here, there, keys)


def unlabelled(test):
    """The label is static: without it all errors of a test share one compiled program."""
    return dataclasses.replace(test, label="approximate")


def decisions(make, error, order, num_examples=500, spread=1.5, num_pairs=300):
    """Decisions on pairs of positions, and those of the full test."""
    posterior = logistic(num_examples)
    test = make(error, 50, order, COEFFICIENTS if order else None).bind(posterior)
    keys = jax.random.split(jax.random.key(5), num_pairs)
    return decide_all(unlabelled(test), posterior, *pairs_of(num_examples, num_pairs, spread), keys)


# the order in which examples are looked at


@pytest.mark.parametrize("num_examples", [1, 2, 1001])
def test_an_order_has_every_example_once(num_examples):
    found = jax.jit(lambda key: random_order(key, num_examples)(jnp.arange(num_examples)))(
        jax.random.key(1)
    )
    assert sorted(np.asarray(found)) == list(range(num_examples))


def test_pairs_of_examples_are_equally_likely():
    orders = jax.jit(jax.vmap(lambda key: random_order(key, 8)(jnp.arange(4))))(
        jax.random.split(jax.random.key(0), 100_000)
    )

    def pairs(examples):
        codes = np.asarray(examples)[:, [0, 3]] @ np.array([8, 1])
        possible = [8 * a + b for a in range(8) for b in range(8) if a != b]
        return (codes[:, None] == np.array(possible)).astype(np.float32)

    assert worst(pairs(orders), 1.0 / 56.0) < 1.0
    # a random start in one order, which looks like it
    starts = np.random.default_rng(0).integers(8, size=(100_000, 1))
    assert worst(pairs((starts + np.arange(4)) % 8), 1.0 / 56.0) > PLANTED


def test_looks_come_after_whole_blocks_and_end_with_all_data():
    assert schedule(1000, 100, 2.0).ends.tolist() == [100, 200, 400, 800, 1000]
    assert schedule(250, 100, 1.0).ends.tolist() == [100, 200, 250]
    assert schedule(40, 100, 2.0).ends.tolist() == [40]


# the differences


@jax.jit
def between(differences, posterior, here, there):
    return differences.between(posterior, here, there, posterior.data)


def curved_log_likelihood(position, example):
    inputs, output = example
    return -0.5 * (output - position["scale"] * jnp.tanh(inputs @ position["weights"]).sum()) ** 2


@pytest.mark.parametrize(
    ("order", "size"), [(2, 1e-3), (2, 2.0), pytest.param(1, 0.05, marks=pytest.mark.slow)]
)
def test_remainders_of_any_likelihood_keep_their_digits(order, size):
    generator = np.random.default_rng(3)
    data = (
        generator.normal(size=(100, 3)).astype(np.float32),
        generator.normal(size=100).astype(np.float32),
    )

    def place(scale):
        return {
            "scale": np.float32(scale * generator.normal()),
            "weights": (scale * generator.normal(size=(3, 4))).astype(np.float32),
        }

    center = place(0.7)
    here, there = (jax.tree.map(np.add, center, place(size)) for _ in range(2))
    posterior = amagold.Posterior(
        curved_log_likelihood,
        lambda at: -0.5 * jnp.sum(at["weights"] ** 2) - at["scale"] ** 2,
        data,
    )
    found = between(differences_of(posterior, order, center), posterior, here, there)

    with jax.enable_x64(True):
        wide_center, wide_here, wide_there, rows = (
            jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), tree)
            for tree in (center, here, there, data)
        )

        def remainder(at, row):
            step = jax.tree.map(jnp.subtract, at, wide_center)

            def along(place):
                return -curved_log_likelihood(
                    jax.tree.map(lambda a, b: a + place * b, wide_center, step), row
                )

            slope = jax.grad(along)
            return along(1.0) - along(0.0) - slope(0.0) - (order > 1) * 0.5 * jax.grad(slope)(0.0)

        wanted = np.asarray(
            jax.jit(jax.vmap(lambda row: remainder(wide_there, row) - remainder(wide_here, row)))(
                rows
            )
        )
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=5e-5 * np.abs(wanted).max())


@pytest.mark.slow
def test_with_and_without_bounds_the_differences_are_the_same():
    posterior = logistic(200)
    (here,), (there,) = pairs_of(200, 1, 1.0)
    plain = dataclasses.replace(posterior, bounds=None)
    found, wanted = (
        between(differences_of(one, 2, COEFFICIENTS), one, here, there)
        for one in (plain, posterior)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5 * float(jnp.abs(wanted).max()))


# decisions


@pytest.mark.parametrize(
    ("make", "order"),
    some_of(
        [(acceptance.austerity, 0), (acceptance.austerity, 2), (acceptance.confidence, 2)],
        (acceptance.austerity, 2),
    ),
)
def test_without_error_they_decide_as_the_full_test(make, order):
    some, all_data = decisions(make, 1e-9, order)
    assert 0.05 < float(all_data.is_accepted.mean()) < 0.95
    assert np.mean(np.asarray(some.num_examples) < 500) > 0.01, "some tests end early"
    assert bool((some.is_accepted == all_data.is_accepted).all())


@pytest.mark.parametrize(
    ("make", "order"),
    some_of(
        [(acceptance.austerity, 0), (acceptance.confidence, 2), (acceptance.barker, 0)],
        (acceptance.confidence, 2),
    ),
)
def test_on_all_data_they_are_exact(make, order):
    some, all_data = decisions(make, NOTHING, order)
    assert bool((some.num_examples == 500).all())
    np.testing.assert_allclose(some.log_ratio, all_data.log_ratio, atol=1e-3)
    if make is acceptance.barker:
        # Barker's probability, on average over the pairs
        assert (
            worst(np.asarray(some.is_accepted) - expit(np.asarray(all_data.log_ratio, np.float64)))
            < 1.0
        )
    else:
        assert bool((some.is_accepted == all_data.is_accepted).all())


@pytest.mark.parametrize(
    ("make", "order", "errors"),
    [
        (acceptance.austerity, 0, (0.3, 0.05, 1e-3)),
        (acceptance.confidence, 2, (0.9, 1e-3, 1e-9)),
        (acceptance.barker, 0, (1.0, 0.2, 0.02)),
    ],
)
def test_a_smaller_error_looks_at_more(make, order, errors):
    counts = [
        float(decisions(make, error, order, spread=0.4)[0].num_examples.mean()) for error in errors
    ]
    assert counts == sorted(counts)
    assert counts[0] < 0.95 * counts[-1]


def plain_austerity(differences, known, error, generator):
    """The t-test written out for one uniform number: whether it accepts, and after how many
    examples.
    """
    num_examples = len(differences)
    order, threshold = (
        generator.permutation(differences),
        (known - np.log(generator.random())) / num_examples,
    )
    for count in (50, 100, 200, 400, num_examples):
        some = order[:count]
        spread = some.std(ddof=1) / np.sqrt(count) * np.sqrt(1.0 - (count - 1) / (num_examples - 1))
        if count == num_examples or t.sf(abs(some.mean() - threshold) / spread, count - 1) < error:
            return float(some.mean() < threshold), float(count)
    raise AssertionError("the last look decides")


def test_the_t_test_is_that_of_the_paper():
    posterior, num_tests = logistic(500), 2000
    (here,), (there,) = pairs_of(500, 1, 1.5)
    test = acceptance.austerity(0.1, 50, 0).bind(posterior)
    keys = jax.random.split(jax.random.key(2), num_tests)
    some, _ = decide_all(
        unlabelled(test),
        posterior,
        jnp.tile(here, (num_tests, 1)),
        jnp.tile(there, (num_tests, 1)),
        keys,
    )
    found = np.stack(
        [np.asarray(some.is_accepted, float), np.asarray(some.num_examples, float)], axis=-1
    )

    def written_out(error):
        generator = np.random.default_rng(3)
        differences = np.asarray(between(test.differences, posterior, here, there), np.float64)
        known = float(posterior.log_prior(there) - posterior.log_prior(here))
        return np.array(
            [
                plain_austerity(differences, known + 0.3 * generator.normal(), error, generator)
                for _ in range(num_tests)
            ]
        )

    assert worst(found - written_out(0.1)) < 1.0
    assert worst(found - written_out(0.02)) > PLANTED


@pytest.mark.parametrize(
    ("make", "most"),
    [(acceptance.austerity, 500), pytest.param(acceptance.barker, 60, marks=pytest.mark.slow)],
)
def test_control_variates_make_the_counts_small(make, most):
    some, _ = decisions(make, 0.05, 2, num_examples=100_000, spread=1.5, num_pairs=64)
    assert float(some.num_examples.mean()) < most, "of 100,000"


def test_the_correction_makes_a_normal_number_logistic():
    at, corrections = np.linspace(-25.0, 25.0, 5001), np.arange(-12, 13)
    assert (
        np.abs(ndtr(at[:, None] - corrections) @ (BOTH_SIDES / BOTH_SIDES.sum()) - expit(at)).max()
        < 1e-5
    )
    assert np.abs(ndtr(at) - expit(at)).max() > 0.1
    # the stored table is what least squares without negative probabilities finds
    whole, places = np.arange(13.0), np.arange(0.0, 16.0, 0.05)
    tails = ndtr(whole - places[:, None]) + np.where(whole > 0, ndtr(-whole - places[:, None]), 0.0)
    masses = np.where(whole > 0, 2.0, 1.0)
    table = nnls(np.vstack([tails, 1e3 * masses]), np.append(expit(-places), 1e3), maxiter=3000)[0]
    np.testing.assert_allclose(table, BOTH_SIDES[12:], atol=2e-5)
    numbers = jax.jit(correction)(jax.random.uniform(jax.random.key(0), (100_000,)))
    assert (
        worst((np.asarray(numbers)[:, None] == corrections[8:17]).astype(float), BOTH_SIDES[8:17])
        < 1.0
    )


# draws


def moved(test, change=None, num_chains=20_000):
    """How far exact draws move, in thresholds and in standard deviations."""
    sampler = amagold.amortized(target(), RandomWalk(0.6), 1, acceptance=test)
    sampler = dataclasses.replace(
        sampler,
        acceptance=unlabelled(sampler.acceptance if change is None else change(sampler.acceptance)),
    )
    draws = exact_draws(200_000)[:num_chains]
    _, states, info = move(sampler, draws, 8, 1)
    change_of = np.asarray(features(states.position) - features(jnp.asarray(draws)))
    bias = np.abs(change_of.mean(axis=0)) / np.asarray(features(jnp.asarray(draws))).std(axis=0)
    return (
        worst(change_of),
        float(bias.max()),
        float(jnp.mean(info.num_energy_examples)) / (8 * COPIES),
    )


@pytest.mark.parametrize(
    ("test", "most"),
    [
        pytest.param(acceptance.austerity(1e-3, 16, 0), 0.5, marks=pytest.mark.slow),
        pytest.param(acceptance.barker(0.1, 16, 0), 0.8, marks=pytest.mark.slow),
        pytest.param(acceptance.confidence(0.1, 16, 0), 1.0, marks=pytest.mark.slow),
        pytest.param(acceptance.austerity(0.05, 16, 2, CENTER), 0.12, marks=pytest.mark.slow),
        pytest.param(acceptance.barker(1.0, 16, 2, CENTER), 0.25, marks=pytest.mark.slow),
    ],
)
def test_with_a_small_error_draws_stay(test, most):
    found, bias, share = moved(test)
    assert found < 1.0
    assert bias < 0.05, "of a standard deviation"
    assert share < most, "of the data"


@pytest.mark.slow
def test_with_a_large_error_they_move():
    # the p-value of 0.5 is the ratio of the first batch, taken as it is
    assert moved(acceptance.austerity(0.5, 16, 0))[0] > PLANTED


@pytest.mark.slow
def test_an_error_that_barker_has_no_room_for_is_seen():
    assert (
        moved(
            acceptance.barker(1.0, 4, 0),
            lambda test: dataclasses.replace(test, variance=jnp.float32(1e6)),
        )[0]
        > PLANTED
    )


# the surface


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("sampler", "test", "label"),
    [
        ("amagold", acceptance.austerity(0.02, 16), "approximate (austerity, error 0.02)"),
        ("hmc", acceptance.barker(0.5, 16, 0), "approximate (barker, variance 0.5)"),
        pytest.param(
            "sgld",
            acceptance.confidence(0.1, 16, 0),
            "approximate (confidence, error 0.1, range measured)",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "l2mc",
            acceptance.austerity(0.05, 16, None),
            "approximate (austerity, error 0.05)",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_every_sampler_takes_them(sampler, test, label):
    settings = {"step_size": 0.2, "num_steps": 2, "acceptance": test}
    if sampler in ("amagold", "sgld"):
        settings["gradient"] = gradients.control_variate(4, 1, center=CENTER)
    built = getattr(amagold, sampler)(target(), **settings)
    assert built.label == label
    states = jax.vmap(built.init)(
        jnp.tile(CENTER, (64, 1)), jax.random.split(jax.random.key(1), 64)
    )
    _, info = jax.vmap(built.step)(jax.random.split(jax.random.key(0), 64), states)
    assert info.label == label
    assert int(info.num_energy_examples.min()) >= 16
    assert int(info.num_energy_examples.max()) <= 8 * COPIES
    assert 0.0 < float(info.is_accepted.mean()) <= 1.0
    assert not bool(info.is_divergent.any())


@pytest.mark.parametrize("order", [0, 1, 2])
def test_bounds_give_the_range(order):
    posterior = logistic(200)
    test = acceptance.confidence(order=order, center=COEFFICIENTS if order else None).bind(
        posterior
    )
    assert test.label == "approximate (confidence, error 0.1)"

    def ranges(position, proposed):
        return jnp.ptp(
            test.differences.between(posterior, position, proposed, posterior.data)
        ), test.rule.prepare(position, proposed)

    found, allowed = jax.jit(jax.vmap(ranges))(*pairs_of(200, 50, 2.0))
    assert bool((found <= 1.001 * allowed).all())
    assert float((found / allowed).max()) > 0.02, "and not by far"


def test_a_proposal_outside_is_rejected_without_a_look():
    posterior = dataclasses.replace(target(), domain=lambda position: position[1] > 0.3)
    test = acceptance.barker(batch_size=16, order=0).bind(posterior)

    @jax.jit
    def decide(test, posterior, proposed):
        memory = test.remember(posterior, jnp.asarray(CENTER))
        return test.decide(
            posterior, test.draw(jax.random.key(0)), memory, proposed, jnp.float32(5.0)
        )

    outside, lost = (
        decide(test, posterior, jnp.array(proposed)) for proposed in ([0.1, 0.2], [jnp.nan, 0.5])
    )
    assert not bool(outside.is_accepted)
    assert not bool(outside.is_divergent)
    assert int(outside.num_examples) == 0
    assert not bool(lost.is_accepted)
    assert bool(lost.is_divergent)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: acceptance.austerity(0.0), "error must be a finite number above 0"),
        (lambda: acceptance.austerity(0.7), "error must be at most 0.5"),
        (
            lambda: acceptance.austerity(batch_size=1),
            "batch_size must be a whole number of at least 2",
        ),
        (lambda: acceptance.austerity(growth=0.5), "growth must be a finite number at least 1"),
        (lambda: acceptance.austerity(order=3), "order must be 0, 1 or 2"),
        (
            lambda: acceptance.austerity(order=0, center=CENTER),
            "center must not be given with order=0",
        ),
        (lambda: acceptance.confidence(1.0), "error must be below 1"),
        (lambda: acceptance.barker(1.5), "variance must be at most 1"),
        (
            lambda: acceptance.barker().bind(amagold.models.double_well()),
            "acceptance.barker needs a target with data",
        ),
        (lambda: acceptance.austerity().bind(target()), "center must be given"),
    ],
)
def test_what_cannot_be_is_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_barker_is_refused_with_a_kept_momentum():
    with pytest.raises(ValueError, match="resample_momentum must be True"):
        amagold.amagold(
            target(), step_size=0.1, acceptance=acceptance.barker(order=0), resample_momentum=False
        )
