"""What every sampler must do, none left out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from doubles import some_of
from every_sampler import ALL_DATA, BIASED, GRADIENTS_PER_STEP, SAMPLERS, TARGETS

import amagold
from amagold.core import trees
from amagold.core.randomness import resolve

# each proposal, with a kept momentum and a fresh one
SOME = some_of(SAMPLERS, "amagold irreversible", "amagold noisy", "sghmc", "sgld corrected")
FIELDS = [
    "is_accepted",
    "acceptance_rate",
    "log_ratio",
    "is_divergent",
    "num_gradient_examples",
    "num_energy_examples",
]


@pytest.mark.few(2)
@pytest.mark.parametrize("form", some_of(TARGETS, "nested"))
@pytest.mark.parametrize("name", SOME)
def test_protocol_on_any_pytree(name, form):
    target, position = TARGETS[form]
    sampler = SAMPLERS[name](target, 0.05)
    state = sampler.init(position, jax.random.key(0))
    after, info = sampler.step(jax.random.key(1), state)
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert [leaf.shape for leaf in jax.tree.leaves(after)] == [
        leaf.shape for leaf in jax.tree.leaves(state)
    ]
    assert [leaf.dtype for leaf in jax.tree.leaves(after)] == [
        leaf.dtype for leaf in jax.tree.leaves(state)
    ]
    assert [leaf.weak_type for leaf in jax.tree.leaves(after)] == [
        leaf.weak_type for leaf in jax.tree.leaves(state)
    ]
    assert jax.tree.structure(after.position) == jax.tree.structure(position)
    assert all(np.shape(getattr(info, field)) == () for field in FIELDS)
    assert info.label == sampler.label == ("biased" if name in BIASED else "exact")
    moved = any(
        np.any(a != b)
        for a, b in zip(
            jax.tree.leaves(after.position), jax.tree.leaves(state.position), strict=True
        )
    )
    assert moved == bool(info.is_accepted)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SOME)
def test_vmap_over_chains_is_each_chain_alone(name):
    target, position = TARGETS["nested"]
    sampler = SAMPLERS[name](target, 0.05)
    keys, starts = jax.random.split(jax.random.key(1), 3), jax.random.split(jax.random.key(2), 3)
    positions = jax.tree.map(
        lambda leaf: jnp.stack([jnp.asarray(leaf) + 0.1 * chain for chain in range(3)]), position
    )
    together = jax.vmap(sampler.step)(keys, jax.vmap(sampler.init)(positions, starts))[0]
    for chain in range(3):
        one = jax.tree.map(lambda leaf, chain=chain: leaf[chain], positions)
        alone = sampler.step(keys[chain], sampler.init(one, starts[chain]))[0]
        for found, wanted in zip(
            jax.tree.leaves(together.position), jax.tree.leaves(alone.position), strict=True
        ):
            np.testing.assert_allclose(found[chain], wanted, rtol=2e-4, atol=2e-5)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SOME)
def test_one_trace_for_a_hundred_step_sizes(name):
    target, position = TARGETS["vector"]
    traces = 0

    @jax.jit
    def run(sampler, key, state):
        nonlocal traces
        traces += 1
        return sampler.step(key, state)

    @jax.jit
    def build_inside(step_size, target, key, state):
        nonlocal traces
        traces += 1
        return SAMPLERS[name](target, step_size).step(key, state)

    state = SAMPLERS[name](target, 0.1).init(position, jax.random.key(0))
    for step_size in np.linspace(0.01, 0.5, 100):
        first, _ = run(SAMPLERS[name](target, float(step_size)), jax.random.key(1), state)
        second, _ = build_inside(step_size, target, jax.random.key(1), state)
    assert traces == 2
    np.testing.assert_allclose(first.position, second.position, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SAMPLERS)
def test_data_is_an_argument_and_not_a_constant(name):
    target, position = TARGETS["vector"]
    sampler = SAMPLERS[name](target, 0.1)
    state = sampler.init(position, jax.random.key(0))
    program = jax.make_jaxpr(lambda sampler, key, state: sampler.step(key, state))(
        sampler, jax.random.key(0), state
    )
    assert not [constant for constant in program.consts if np.size(constant) >= 12]


@pytest.mark.few(3)
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", SOME)
def test_no_key_is_used_twice(name, late, monkeypatch):
    """JAX's own checker follows every key through the program."""
    monkeypatch.setattr("amagold.core.randomness.BLOCK_SIZE", 0 if late else 64)
    target, position = TARGETS["nested"]
    sampler = SAMPLERS[name](target, 0.1)

    def transition(key, late):
        start_key, step_key = jax.random.split(key)
        state = sampler.init(position, start_key)
        randomness = sampler.draw(step_key, state.position, late=late)
        return sampler.advance(state, randomness, None if late else sampler.gather(randomness))

    with jax.debug_key_reuse(True):
        state, _ = jax.jit(transition, static_argnums=1)(jax.random.key(0), late)
    assert bool(jnp.isfinite(trees.flatten(state.position)).all())


def test_the_checker_of_keys_sees_a_key_used_twice():
    def broken(key):
        return jax.random.normal(key) + jax.random.normal(key)

    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError):
        jax.jit(broken)(jax.random.key(0))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SOME)
def test_late_drawing_gives_the_same_bits(name, monkeypatch):
    monkeypatch.setattr("amagold.core.randomness.BLOCK_SIZE", 0)
    target, position = TARGETS["nested"]
    sampler = SAMPLERS[name](target, 0.1)
    state = sampler.init(position, jax.random.key(0))
    early, late = (
        sampler.draw(jax.random.key(1), state.position, late=late) for late in (False, True)
    )
    first, _ = jax.jit(
        lambda sampler, state, drawn: sampler.advance(state, drawn, sampler.gather(drawn))
    )(sampler, state, early)
    second, _ = jax.jit(lambda sampler, state, drawn: sampler.advance(state, drawn))(
        sampler, state, late
    )
    made = jax.vmap(lambda noise: resolve(sampler.proposal.draw, noise, state.position))(late.noise)
    for found, wanted in zip(jax.tree.leaves(made), jax.tree.leaves(early.noise), strict=True):
        np.testing.assert_array_equal(found, wanted)
    # the arithmetic on those bits may round differently where the compiler fuses it differently
    for found, wanted in zip(
        jax.tree.leaves(first.position), jax.tree.leaves(second.position), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SOME)
def test_blackjax_drives_it(name):
    blackjax = pytest.importorskip("blackjax")
    target, position = TARGETS["vector"]
    sampler = SAMPLERS[name](target, 0.1)
    final, (positions, accepted) = blackjax.util.run_inference_algorithm(
        jax.random.key(3),
        sampler,
        50,
        initial_position=position,
        transform=lambda state, info: (state.position, info.is_accepted),
    )
    assert positions.shape == (50, 3)
    np.testing.assert_array_equal(positions[-1], final.position)
    assert bool(jnp.isfinite(positions).all())
    assert bool(accepted.any())


@pytest.mark.parametrize("name", SOME)
def test_counts_of_examples(name):
    target, position = TARGETS["vector"]
    sampler = SAMPLERS[name](target, 0.1)
    _, info = sampler.step(jax.random.key(1), sampler.init(position, jax.random.key(0)))
    per_gradient = 12 if name in ALL_DATA else 4
    num_gradients = 3 * GRADIENTS_PER_STEP.get(name, 1)
    assert int(info.num_gradient_examples) == num_gradients * per_gradient
    assert int(info.num_energy_examples) == (0 if name in BIASED else 12)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SOME)
def test_double_precision_positions_work(name):
    target, position = TARGETS["vector"]
    with jax.enable_x64(True):
        sampler = SAMPLERS[name](target, 0.1)
        state = sampler.init(np.asarray(position, np.float64), jax.random.key(0))
        after, _ = sampler.step(jax.random.key(1), state)
        assert after.position.dtype == jnp.float64


def test_plans_do_not_share_a_trace():
    """Two plans with equal fields are different plans: a cached program of one must not serve the
    other.
    """
    target, position = TARGETS["vector"]
    found = []
    for plan in ("iid", "epoch", "palindrome"):
        sampler = amagold.amagold(
            target, step_size=0.1, num_steps=3, gradient=amagold.gradients.minibatch(4, plan=plan)
        )
        found.append(float(sampler.step(jax.random.key(1), sampler.init(position))[1].log_ratio))
    assert len(set(found)) == 3


def test_a_callable_that_cannot_be_hashed_is_a_fine_target():
    """Modules of network libraries compare by their arrays, and so have no hash."""

    class Module:
        def __init__(self, scale):
            self.scale = scale

        def __eq__(self, other):
            return bool(np.all(self.scale == other.scale))

        __hash__ = None

        def __call__(self, position):
            return -0.5 * jnp.sum(self.scale * position**2)

    sampler = amagold.hmc(amagold.Density(Module(jnp.ones(3))), step_size=0.1)
    _, info = sampler.step(jax.random.key(0), sampler.init(np.zeros(3)))
    assert info.label == "exact"
