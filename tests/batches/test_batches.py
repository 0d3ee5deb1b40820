"""Batch plans: each reads the same backwards, and the broken ones are refused by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from every_sampler import TARGETS
from false_alarms import PLANTED, worst

import amagold
from amagold import gradients
from amagold.batches import plan_by_name

NUM_EXAMPLES, BATCH_SIZE, NUM_DRAWS = 6, 2, 40_000


def sequences(plan, num_steps):
    keys = jax.random.split(jax.random.key(0), NUM_DRAWS)
    return np.asarray(
        jax.vmap(lambda key: plan.draw(key, num_steps, BATCH_SIZE, NUM_EXAMPLES))(keys)
    )


def asymmetry(batches):
    """How a sequence of batches differs from its reverse: products of batch sums that see the
    order.
    """
    sums = np.sin(1.0 + batches).sum(axis=-1)
    return np.stack(
        [sums[:, 0] - sums[:, -1], sums[:, 0] * sums[:, 1] ** 2 - sums[:, -1] * sums[:, -2] ** 2],
        axis=-1,
    )


@pytest.mark.parametrize(
    ("name", "num_steps"),
    [("iid", 3), ("epoch", 2), ("epoch", 3), ("epoch", 6), ("palindrome", 5), ("palindrome", 6)],
)
def test_as_likely_in_reverse(name, num_steps):
    plan = plan_by_name(name)
    plan.check(num_steps, BATCH_SIZE, NUM_EXAMPLES)
    batches = sequences(plan, num_steps)
    assert batches.shape == (NUM_DRAWS, num_steps, BATCH_SIZE)
    difference = asymmetry(batches)
    assert name == "palindrome" or worst(difference) < 1.0
    if name == "palindrome":
        np.testing.assert_array_equal(batches, batches[:, ::-1])
    # every example is as likely as any other at every step, so that the gradient is unbiased
    for step in range(num_steps):
        counts = np.stack(
            [(batches[:, step] == number).sum(axis=-1) for number in range(NUM_EXAMPLES)], axis=-1
        )
        assert worst(counts, expected=BATCH_SIZE / NUM_EXAMPLES) < 1.0


def test_a_fixed_order_is_seen_to_be_asymmetric():
    rows = np.arange(NUM_EXAMPLES).reshape(1, 3, 2) + np.random.default_rng(0).integers(
        0, 2, size=(NUM_DRAWS, 1, 1)
    )
    assert worst(asymmetry(rows)) > PLANTED


def test_an_epoch_repeats_no_example():
    batches = sequences(plan_by_name("epoch"), 3).reshape(NUM_DRAWS, -1)
    assert np.all(np.sort(batches, axis=-1) == np.arange(NUM_EXAMPLES))
    two_epochs = sequences(plan_by_name("epoch"), 6).reshape(NUM_DRAWS, 2, -1)
    assert np.all(np.sort(two_epochs, axis=-1) == np.arange(NUM_EXAMPLES))


@pytest.mark.parametrize(
    "name", ["fixed", "sequential", "unshuffled", "straddling", "running", "ragged"]
)
def test_broken_plans_are_refused_by_name(name):
    with pytest.raises(
        ValueError,
        match=f"plan='{name}' breaks exactness: .*Use one of 'iid', 'epoch', 'palindrome'",
    ):
        gradients.minibatch(4, plan=name)


def test_an_unknown_plan_is_an_error():
    with pytest.raises(ValueError, match="plan must be one of 'iid'"):
        gradients.minibatch(4, plan="shuffled")


def test_an_honest_but_broken_plan_is_refused_for_exact_samplers_alone():
    class InOrder:
        is_reversal_invariant = False

        def check(self, num_steps, batch_size, num_examples):
            pass

        def draw(self, key, num_steps, batch_size, num_examples):
            return jnp.arange(num_steps * batch_size).reshape(num_steps, batch_size)

    target, position = TARGETS["vector"]
    gradient = gradients.minibatch(4, plan=InOrder())
    with pytest.raises(ValueError, match="reversal-invariant"):
        amagold.amagold(target, step_size=0.1, num_steps=3, gradient=gradient)
    sampler = amagold.sghmc(target, step_size=0.1, num_steps=3, gradient=gradient)
    assert sampler.step(jax.random.key(0), sampler.init(position))[1].label == "biased"


@pytest.mark.parametrize(("plan", "num_steps"), [("epoch", 4), ("palindrome", 7)])
def test_a_trajectory_that_does_not_fit_the_epoch_is_refused(plan, num_steps):
    target, _ = TARGETS["vector"]
    with pytest.raises(ValueError, match="num_steps must be at most"):
        amagold.amagold(
            target, step_size=0.1, num_steps=num_steps, gradient=gradients.minibatch(4, plan=plan)
        )


def test_an_outside_loader_is_reversed_by_a_fair_coin():
    target, position = TARGETS["vector"]
    sampler = amagold.amagold(
        target, step_size=0.1, num_steps=3, gradient=gradients.minibatch(4, plan="external")
    )
    batches = jax.tree.map(lambda leaf: leaf.reshape(3, 4, *leaf.shape[1:]), target.data)
    first = []
    for seed in range(200):
        rows = sampler.gather(sampler.draw(jax.random.key(seed), jnp.asarray(position)), batches)
        same = bool((rows["y"] == batches["y"]).all())
        assert same or bool((rows["y"] == batches["y"][::-1]).all())
        first.append(float(same))
    assert worst(np.array(first), expected=0.5) < 1.0
    with pytest.raises(ValueError, match="batches must hold num_steps x batch_size rows"):
        sampler.step(jax.random.key(0), sampler.init(position))
    with pytest.raises(ValueError, match="stack the next 3 batches"):
        sampler.step(jax.random.key(0), sampler.init(position), target.data)
    _, info = sampler.step(jax.random.key(0), sampler.init(position), batches)
    assert info.label == "exact"
