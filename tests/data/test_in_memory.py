"""Examples in memory: asked for by number, by chunk, or for a few that stand for all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amagold
from amagold.data import Data, InMemory, NoData

NUM_EXAMPLES = 11
NUMBERS = np.arange(NUM_EXAMPLES)
ARRAYS = {
    "x": jnp.asarray(np.stack([NUMBERS, -NUMBERS], 1), jnp.float32),
    "y": jnp.asarray(NUMBERS),
}
DATA = InMemory(ARRAYS)


def test_both_kinds_are_data():
    assert isinstance(DATA, Data)
    assert isinstance(NoData(), Data)
    assert not isinstance(ARRAYS, Data)
    assert DATA.num_examples == NUM_EXAMPLES
    assert DATA.example["x"].shape == (2,)
    assert DATA.example["y"].shape == ()


def test_rows_have_the_axes_of_their_numbers():
    found = DATA.rows(np.array([[3, 0], [10, 3]]))
    np.testing.assert_array_equal(found["y"], [[3, 0], [10, 3]])
    assert found["x"].shape == (2, 2, 2)


@pytest.mark.parametrize("chunk_size", [1, 3, 4, 10, 11, 99])
def test_a_walk_sees_each_example_once(chunk_size):
    def visit(carry, chunk):
        total, found = carry
        values = chunk.rows["y"].astype(jnp.float32) + 1.0
        return total + chunk.only_new(values).sum(), chunk.write(found, values)

    total, found = jax.jit(
        lambda data: data.fold(visit, (0.0, jnp.zeros(NUM_EXAMPLES)), chunk_size)
    )(DATA)
    assert total == np.sum(NUMBERS + 1)
    np.testing.assert_array_equal(found, NUMBERS + 1)


@pytest.mark.parametrize("chunk_size", [3, 11])
@pytest.mark.parametrize("asked", [[True], [False], [True, False], [False, False]])
def test_a_walk_that_nobody_asks_for_is_not_made(asked, chunk_size):
    """Chains side by side go together, so that one that asks makes all of them go; the others keep
    what they had.
    """
    visits = []

    def visit(total, chunk, weight):
        jax.debug.callback(lambda start: visits.append(int(start)), chunk.start)
        return total + weight * chunk.only_new(chunk.rows["y"].astype(jnp.float32)).sum()

    def one(flag, weight):
        return DATA.scan_if(flag, visit, jnp.float32(-1.0), weight, chunk_size)

    weights = np.arange(1.0, len(asked) + 1.0, dtype=np.float32)
    found = np.asarray(jax.vmap(one)(np.array(asked), weights))
    jax.effects_barrier()
    np.testing.assert_array_equal(found, np.where(asked, weights * NUMBERS.sum() - 1.0, -1.0))
    assert bool(visits) == any(asked)


@pytest.mark.parametrize("count", [1, 2, 5, 11, 50])
def test_some_stand_for_all(count):
    few = np.asarray(DATA.some(count).arrays["y"])
    assert 1 <= len(few) <= count
    assert len(few) == count or count > NUM_EXAMPLES
    assert len(set(few)) == len(few)
    assert set(few) <= set(NUMBERS)


def test_a_fingerprint_is_of_all_numbers_in_order():
    known = DATA.fingerprint()
    assert known == InMemory(jax.tree.map(jnp.array, ARRAYS)).fingerprint()
    turned = InMemory(jax.tree.map(lambda leaf: leaf[::-1], ARRAYS)).fingerprint()
    other = InMemory(ARRAYS | {"y": ARRAYS["y"].at[5].set(7)}).fingerprint()
    wider = InMemory(ARRAYS | {"y": ARRAYS["y"].astype(jnp.float32)}).fingerprint()
    assert len({known, turned, other, wider}) == 4


def test_without_examples_nothing_is_visited():
    none = NoData()
    assert none.fold(lambda carry, chunk: 1 / 0, "as it was", 1) == "as it was"
    assert none.scan_if(True, lambda carry, chunk, held: 1 / 0, "as it was", (), 1) == "as it was"
    assert none.some(5).num_examples == 0
    assert none.fingerprint() is None
    with pytest.raises(ValueError, match="data must hold examples to be asked for rows"):
        none.rows(np.zeros(1, int))


def test_a_posterior_takes_a_place_for_examples():
    def log_likelihood(position, example):
        return -0.5 * (example["y"] - position) ** 2

    arrays = {"y": np.arange(5.0, dtype=np.float32)}
    given = amagold.Posterior(log_likelihood, lambda at: -0.5 * at**2, arrays, init=0.0)
    placed = amagold.Posterior(
        log_likelihood, lambda at: -0.5 * at**2, InMemory({"y": jnp.arange(5.0)}), init=0.0
    )
    assert placed.num_examples == given.num_examples == 5
    assert amagold.energy_difference(placed, 1.0, 0.5) == amagold.energy_difference(given, 1.0, 0.5)
