"""Derivatives of ordered classes in every direction: bounds hold, and are not much too wide."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from amagold.models._ordinal import LargestThird, Ordinal, OrdinalExample

SIZE = 20_000


def random_places(num_classes):
    """Places from usual to extreme, unit vectors with much and little of the gaps, and classes."""
    generator = np.random.default_rng(num_classes)
    gaps = generator.choice([0.5, 2.0, 8.0], (SIZE, 1)) * generator.normal(
        size=(SIZE, num_classes - 2)
    )
    z = 3.0 * generator.normal(size=SIZE) + generator.uniform(0.0, num_classes, SIZE)
    directions = generator.normal(size=(SIZE, num_classes - 1))
    directions[:, 1:] *= generator.choice([0.0, 0.3, 1.0, 3.0], (SIZE, 1))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.column_stack([z, gaps]), directions, generator.integers(0, num_classes, SIZE)


def shares(num_classes, slack=1.0):
    """The first three derivatives divided by what they may be at most, and the classes."""
    outcome = Ordinal(num_classes)
    bounds = outcome.bounds(None)

    def one(place, direction, label):
        example = OrdinalExample(None, label)

        def along(step):
            return outcome(place + step * direction, example)

        first = jax.grad(along)
        second = jax.grad(first)
        found = jnp.stack([first(0.0), second(0.0), jax.grad(second)(0.0)])
        return jnp.abs(found) / (slack * bounds.scale(place, example))

    places, directions, labels = random_places(num_classes)
    with jax.enable_x64(True):
        arguments = [jnp.asarray(each) for each in (places, directions, labels)]
        found = np.asarray(jax.jit(jax.vmap(one))(*arguments))
    return found / np.array(bounds.derivatives), labels


@pytest.mark.few(1)
@pytest.mark.parametrize("num_classes", [3, 5, 8])
def test_bounds_hold_in_every_direction(num_classes):
    found, labels = shares(num_classes)
    assert found.max() <= 1.0 + 1e-9
    # of every class they are not far from what is needed, and of the first no more than that
    widest = np.array([found[labels == label, 2].max() for label in range(num_classes)])
    assert widest.min() > 0.25
    assert widest[0] > 0.99
    assert shares(num_classes, slack=0.9)[0].max() > 1.0, "a tenth less would be seen"


def test_other_classes_need_wider_bounds_than_the_first():
    """If all had the first one's, a third derivative would be seen to be larger."""
    found, _ = shares(5)
    labels = jnp.asarray(random_places(5)[2])
    scales = jax.vmap(lambda label: LargestThird(5)(None, OrdinalExample(None, label)))(labels)
    assert np.max(found[:, 2] * np.asarray(scales)) > 2.0 * float(scales.min())
