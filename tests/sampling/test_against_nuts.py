"""Every exact way to sample agrees with NumPyro's NUTS on real tables: means and standard
deviations, within joint Monte Carlo error.
"""

import itertools

import jax
import numpy as np
import pytest
from false_alarms import PLANTED, threshold

import amagold
from amagold import acceptance, gradients
from amagold.core import trees
from amagold.mode._curvature import Curvature, curvature_at
from amagold.mode._mode_search import find_mode
from amagold.runner import run_chains
from amagold.trajectory import Rotation
from amagold.trajectory._mass_matrix import as_mass
from amagold_lab.bench.effective_sample_size import differences, effective_draws

pytest.importorskip("numpyro")
from real_tables import nuts, posterior

pytestmark = pytest.mark.slow

TABLES = ("heart", "australian", "magic")
NUM_CHAINS, NUM_SAMPLES, NUM_BURN_IN = 32, 1_500, 150
ENOUGH = 300.0  # effective draws of the worst coordinate, without which agreement says little

# name -> the gradient for N examples, step size and steps, in units of the posterior: the noisier,
# the smaller the steps
GRADIENTS = {
    "full gradient": (lambda number: gradients.full(), 1.0, 2),
    "minibatch": (lambda number: gradients.minibatch(number // 2), 0.12, 10),
    "control variate 1": (lambda number: gradients.control_variate(number // 4, order=1), 0.3, 6),
    "control variate 2": (lambda number: gradients.control_variate(64, order=2), 1.0, 2),
}
ORDERS = {
    "full": [{}],
    "tuna": [{"order": 0}, {"order": 1}, {"order": 2}],
    "firefly": [{}],
    "delayed": [{}],
}
TESTS = [
    (name, settings)
    for name, choices in ORDERS.items()
    if hasattr(acceptance, name)
    for settings in choices
]
Test = tuple[str, dict[str, int]]
# every gradient with the test over all data, and every other test with the gradient that suits it
EACH_ONCE = [
    *((gradient, TESTS[0]) for gradient in GRADIENTS),
    *(("control variate 2", test) for test in TESTS[1:]),
]
NUM_RUNS = 100  # more than are compared below: all of them together are one check of the suite


def laplace(target: amagold.Posterior) -> tuple[trees.PyTree, Curvature]:
    mode = find_mode(target, target.init).position
    return mode, curvature_at(target, mode)


def words(part: object) -> str:
    """A gradient or a test in the name of a case."""
    return part if isinstance(part, str) else " ".join([part[0], *map(str, part[1].values())])  # type: ignore[index]


def draw(
    target: amagold.Posterior,
    gradient: str,
    test: Test,
    *,
    resample: bool = True,
    num_samples: int = NUM_SAMPLES,
) -> np.ndarray:
    """Draws with axes (chain, draw, coordinate), started from the Laplace approximation."""
    make, step_size, num_steps = GRADIENTS[gradient]
    mode, curvature = laplace(target)
    sampler = amagold.amagold(
        target,
        step_size=step_size,
        num_steps=num_steps,
        mass=np.asarray(curvature.matrix, np.float32),
        gradient=make(target.num_examples),
        acceptance=getattr(acceptance, test[0])(**test[1]),
        resample_momentum=resample,
    )
    return run(sampler, mode, curvature, num_samples)


def run(
    sampler: amagold.Sampler,
    mode: trees.PyTree,
    curvature: Curvature,
    num_samples: int = NUM_SAMPLES,
) -> np.ndarray:
    assert sampler.label == "exact"
    away = (
        np.random.default_rng(0).normal(size=(NUM_CHAINS, curvature.num_parameters))
        @ curvature.factor.T
    )
    starts = jax.vmap(lambda flat: trees.unflatten_like(flat, mode))(
        np.asarray(trees.flatten(mode) + away, np.float32)
    )
    found = run_chains(sampler, jax.random.key(1), starts, num_samples, num_burn_in=NUM_BURN_IN)
    return np.asarray(found.position).reshape(NUM_CHAINS, num_samples, -1)


def disagreement(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference of a mean or a standard deviation as a share of its threshold: at most
    1 if both sample the same.
    """
    assert effective_draws(ours) > ENOUGH
    middle = theirs.mean(axis=(0, 1), dtype=np.float64)
    # a standard deviation is off by as many errors as its square, the mean of the squares about one
    # common middle
    found = np.abs(
        [differences((ours - middle) ** power, (theirs - middle) ** power) for power in (1, 2)]
    )
    return float(np.max(found) / threshold(found.size * NUM_RUNS))


@pytest.mark.parametrize(("gradient", "test"), list(itertools.product(GRADIENTS, TESTS)), ids=words)
def test_every_combination_agrees_with_nuts(gradient: str, test: Test) -> None:
    assert disagreement(draw(posterior("heart"), gradient, test), nuts("heart")) < 1.0


@pytest.mark.parametrize("name", ["australian", "magic"])
@pytest.mark.parametrize(("gradient", "test"), EACH_ONCE, ids=words)
def test_every_part_agrees_with_nuts_on_larger_tables(name: str, gradient: str, test: Test) -> None:
    # every bright example adds noise to Firefly's ratio, and few of its proposals are accepted
    num_samples = 4 * NUM_SAMPLES if test[0] == "firefly" else NUM_SAMPLES
    assert (
        disagreement(draw(posterior(name), gradient, test, num_samples=num_samples), nuts(name))
        < 1.0
    )


@pytest.mark.parametrize("test", TESTS, ids=words)
def test_kept_momenta_agree_with_nuts(test: Test) -> None:
    assert (
        disagreement(
            draw(posterior("heart"), "control variate 2", test, resample=False), nuts("heart")
        )
        < 1.0
    )


@pytest.mark.parametrize("gradient", ["full gradient", "control variate 2"])
@pytest.mark.parametrize("test", TESTS, ids=words)
def test_turns_agree_with_nuts(gradient: str, test: Test) -> None:
    target = posterior("heart")
    mode, curvature = laplace(target)
    make, _, num_steps = GRADIENTS[gradient]
    proposal = Rotation(0.5 * np.pi / num_steps, as_mass(curvature.matrix), mode)
    chosen = getattr(acceptance, test[0])(**test[1])
    sampler = amagold.amortized(target, proposal, num_steps, make(target.num_examples), chosen)
    assert disagreement(run(sampler, mode, curvature), nuts("heart")) < 1.0


@pytest.mark.parametrize("gradient", GRADIENTS)
def test_several_classes_agree_with_nuts(gradient: str) -> None:
    test = ("tuna", {"order": 2}) if gradient == "control variate 2" else ("full", {})
    assert (
        disagreement(draw(posterior("contraceptive"), gradient, test), nuts("contraceptive")) < 1.0
    )


@pytest.mark.parametrize("name", [*TABLES, "contraceptive"])
def test_what_is_planned_agrees_with_nuts(name: str) -> None:
    run = amagold.sample(posterior(name), num_samples=2_000, num_chains=NUM_CHAINS, progress=False)
    assert run.label == "exact"
    values = run.posterior["theta"].to_numpy()
    assert disagreement(values.reshape(*values.shape[:2], -1), nuts(name)) < 1.0


@pytest.mark.parametrize("name", ["heart", "contraceptive"])
def test_another_prior_is_found_different(name: str) -> None:
    values = draw(
        posterior(name, prior_scale=1.1), "full gradient", ("full", {}), num_samples=8_000
    )
    assert disagreement(values, nuts(name)) > PLANTED
