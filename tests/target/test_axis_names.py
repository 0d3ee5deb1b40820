"""Names of parameters and of axes, for targets of the user's own."""

import jax.numpy as jnp
import numpy as np
import pytest

import amagold
from amagold.sampling._labelled import labelled

DATA = np.linspace(-1.0, 1.0, 40, dtype=np.float32)


def posterior(init, **labels):
    def log_likelihood(position, x):
        middle = position["a"].sum() if isinstance(position, dict) else position.sum()
        return -0.5 * (x - middle) ** 2

    def log_prior(position):
        return -0.5 * sum(jnp.sum(leaf**2) for leaf in jax_leaves(position))

    return amagold.Posterior(log_likelihood, log_prior, DATA, init=init, **labels)


def jax_leaves(position):
    return list(position.values()) if isinstance(position, dict) else [position]


def sampled(target):
    return amagold.sample(target, 20, 20, 2, progress=False)


pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")


@pytest.mark.slow
def test_a_list_names_the_parameters_of_a_vector():
    run = sampled(posterior(np.zeros(3), names=["low", "middle", "high"]))
    assert run.posterior["theta"].dims == ("chain", "draw", "parameter")
    assert list(run.posterior["parameter"].values) == ["low", "middle", "high"]
    assert "theta[middle]" in run.summary().index


def test_axes_have_names_and_places():
    dims = {"a": ["row", "side"]}
    target = posterior({"a": np.zeros((2, 3))}, dims=dims, names={"side": ["l", "m", "r"]})
    found = sampled(target).posterior
    assert found["a"].dims == ("chain", "draw", "row", "side")
    assert list(found["side"].values) == ["l", "m", "r"]
    for wrong in ("lr", 3):
        with pytest.raises(ValueError, match="names must map each name to a list"):
            posterior({"a": np.zeros((2, 3))}, dims=dims, names={"side": wrong})


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"names": ["one"]}, "names must have one for every place along 'parameter'"),
        ({"dims": {"b": ["row"]}}, "dims must be of variables, but 'b' is none"),
        ({"dims": {"theta": ["row", "side"]}}, "dims must name every axis of 'theta'"),
    ],
)
def test_what_does_not_fit_is_said(labels, words):
    with pytest.raises(ValueError, match=words):
        sampled(posterior(np.zeros(3), **labels))


def test_names_of_no_axis_are_said():
    with pytest.raises(ValueError, match="names must be of axes that dims mention"):
        posterior(np.zeros(3), names={"row": ["a"]})


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "labels",
    [
        None,
        3,
        {"dims": 3, "names": {}},
        {"dims": {"theta": "x"}, "names": {}},
        {"dims": {"theta": ["chain"]}, "names": {}},
        {"dims": {"theta": ["p"]}, "names": {"p": ["a"]}},
    ],
)
def test_a_strangers_labels_do_no_harm(labels):
    groups = sampled(posterior(np.zeros(3)))._groups
    found = labelled(groups, labels)["posterior"]["theta"]
    np.testing.assert_array_equal(found.values, groups["posterior"]["theta"].values)
