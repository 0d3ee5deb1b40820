"""Every place for examples: asked for by number, by chunk, or for a few that stand for all, and
sampled from as from memory.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec as Spec

import amagold
from amagold.data import Data, InMemory, NoData, split_over
from amagold.data._on_host import on_host

NUM_EXAMPLES = 11
NUMBERS = np.arange(NUM_EXAMPLES)
ARRAYS = {
    "x": jnp.asarray(np.stack([NUMBERS, -NUMBERS], 1), jnp.float32),
    "y": jnp.asarray(NUMBERS),
}


def split(arrays, shape=(1, 2)):
    devices = np.array(jax.devices()).reshape(shape)
    return split_over(InMemory(arrays), Mesh(devices, ("chain", "data")), "data")


def elsewhere(arrays):
    """For a device that is not the host, as this one is not told to be."""
    rows = jax.tree.map(np.asarray, arrays)
    return on_host(rows, rows, InMemory(arrays).fingerprint(), None)


# how to put arrays there
PLACES = {"in memory": InMemory, "on the host": elsewhere, "over devices": split}


@pytest.fixture(params=PLACES)
def place(request):
    return PLACES[request.param]


def test_it_is_data(place):
    data = place(ARRAYS)
    assert isinstance(data, Data)
    assert isinstance(NoData(), Data)
    assert not isinstance(ARRAYS, Data)
    assert data.is_concrete
    assert data.num_examples == NUM_EXAMPLES
    assert data.example == InMemory(ARRAYS).example


def test_rows_have_the_axes_of_their_numbers(place):
    found = place(ARRAYS).rows(np.array([[3, 0], [10, 3]]))
    np.testing.assert_array_equal(found["y"], [[3, 0], [10, 3]])
    assert found["x"].shape == (2, 2, 2)


@pytest.mark.parametrize(
    "chunk_size", [3, 11, *(pytest.param(size, marks=pytest.mark.slow) for size in (1, 4, 10, 99))]
)
def test_a_walk_sees_each_example_once(place, chunk_size):
    def visit(carry, chunk):
        total, found = carry
        values = chunk.rows["y"].astype(jnp.float32) + 1.0
        return total + chunk.only_new(values).sum(), chunk.write(found, values)

    total, found = jax.jit(
        lambda data: data.fold(visit, (0.0, jnp.zeros(NUM_EXAMPLES)), chunk_size)
    )(place(ARRAYS))
    assert total == np.sum(NUMBERS + 1)
    np.testing.assert_array_equal(found, NUMBERS + 1)


@pytest.mark.few(1)
@pytest.mark.parametrize("chunk_size", [3, pytest.param(11, marks=pytest.mark.slow)])
@pytest.mark.parametrize("asked", [[True], [False], [True, False], [False, False]])
def test_a_walk_that_nobody_asks_for_is_not_made(place, asked, chunk_size):
    """Chains side by side go together, so that one that asks makes all of them go; the others keep
    what they had.
    """
    visits, data = [], place(ARRAYS)

    def visit(total, chunk, weight):
        jax.debug.callback(lambda start: visits.append(int(start)), chunk.start)
        return total + weight * chunk.only_new(chunk.rows["y"].astype(jnp.float32)).sum()

    def one(flag, weight):
        return data.scan_if(flag, visit, jnp.float32(-1.0), weight, chunk_size)

    weights = np.arange(1.0, len(asked) + 1.0, dtype=np.float32)
    found = np.asarray(jax.vmap(one)(np.array(asked), weights))
    jax.effects_barrier()
    np.testing.assert_array_equal(found, np.where(asked, weights * NUMBERS.sum() - 1.0, -1.0))
    assert bool(visits) == any(asked)


def test_chains_of_several_devices_ask_for_rows_in_double_precision_too():
    """Whole numbers are then of 64 bits wherever nobody says otherwise."""
    data = split(ARRAYS)
    numbers = jnp.asarray([[3, 0], [10, 7]])
    with jax.enable_x64(True):
        asked = jax.shard_map(
            lambda data, numbers: data.rows(numbers),
            mesh=data.mesh,
            in_specs=(Spec("data"), Spec("data")),
            out_specs=Spec("data"),
            check_vma=False,
        )
        found = jax.jit(asked)(data, numbers)
    np.testing.assert_array_equal(found["y"], numbers)
    np.testing.assert_array_equal(found["x"][..., 0], numbers)


@pytest.mark.parametrize("count", [1, 2, 5, 11, 50])
def test_some_stand_for_all(place, count):
    some = place(ARRAYS).some(count)
    few = np.asarray(some.rows(np.arange(some.num_examples))["y"])
    assert 1 <= len(few) <= count
    assert len(few) == count or count > NUM_EXAMPLES
    assert len(set(few)) == len(few)
    assert set(few) <= set(NUMBERS)


def test_a_fingerprint_is_of_all_numbers_in_order(place):
    known = place(ARRAYS).fingerprint()
    assert known == place(jax.tree.map(jnp.array, ARRAYS)).fingerprint()
    turned = place(jax.tree.map(lambda leaf: leaf[::-1], ARRAYS)).fingerprint()
    other = place(ARRAYS | {"y": ARRAYS["y"].at[5].set(7)}).fingerprint()
    wider = place(ARRAYS | {"y": ARRAYS["y"].astype(jnp.float32)}).fingerprint()
    assert len({known, turned, other, wider}) == 4


def test_without_examples_nothing_is_visited():
    none = NoData()
    assert none.fold(lambda carry, chunk: 1 / 0, "as it was", 1) == "as it was"
    assert none.scan_if(True, lambda carry, chunk, held: 1 / 0, "as it was", (), 1) == "as it was"
    assert none.some(5).num_examples == 0
    assert none.fingerprint() is None
    with pytest.raises(ValueError, match="data must hold examples to be asked for rows"):
        none.rows(np.zeros(1, int))


def log_likelihood(position, example):
    return -0.5 * (example["y"] - position - example["x"][0]) ** 2


def log_prior(position):
    return -0.5 * position**2


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "num_chains", [2, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 4))]
)
def test_a_run_is_the_same_as_from_memory(place, num_chains):
    """Sums over all data, minibatches and an exact test: to the bit, or to what sums in another
    order round to.
    """
    given, placed = (
        amagold.Posterior(log_likelihood, log_prior, data, init=0.0)
        for data in (ARRAYS, place(ARRAYS))
    )
    assert placed.num_examples == given.num_examples == NUM_EXAMPLES
    assert amagold.energy_difference(placed, 1.0, 0.5) == amagold.energy_difference(given, 1.0, 0.5)
    found = [
        amagold.run_chains(
            amagold.amagold(target, step_size=0.2, num_steps=2, batch_size=3),
            jax.random.key(0),
            np.zeros(num_chains, np.float32),
            20,
        )
        for target in (given, placed)
    ]
    rounding = 1e-5 if place is split else 0.0
    np.testing.assert_allclose(found[0].position, found[1].position, rtol=0.0, atol=rounding)
    assert len(np.unique(found[0].position)) > 10
