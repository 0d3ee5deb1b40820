"""One call with any sampler and any number of chains: alone or together, on one device or two."""

import numpy as np
import pytest
from every_sampler import SAMPLERS, TARGETS

import amagold
from amagold import acceptance, gradients, models

GENERATOR = np.random.default_rng(5)
X = GENERATOR.normal(size=(30, 2)).astype(np.float32)
Y = (GENERATOR.random(30) < 0.5).astype(int)
CENTER = np.zeros(3, np.float32)
TESTS = {
    "tuna": acceptance.tuna(center=CENTER, block_size=4),
    "firefly": acceptance.firefly(center=CENTER, block_size=4),
    "delayed": acceptance.delayed(center=CENTER),
    "austerity": acceptance.austerity(batch_size=8),
    "confidence": acceptance.confidence(batch_size=8),
    "barker": acceptance.barker(batch_size=8),
}


def check(sampler, num_chains, init):
    run = amagold.sample(sampler, 3, 2, num_chains, init=init, progress=False)
    for name, values in [*run.posterior.items(), *run.sample_stats.items()]:
        assert values.shape[:2] == (num_chains, 3), name
        assert np.all(np.isfinite(values)) or name == "energy_error"
    first = next(iter(run.posterior.data_vars.values())).to_numpy().reshape(num_chains, 3, -1)
    assert len(np.unique(first[:, -1, 0])) > num_chains // 2, "chains go their own ways"
    counts = run.sample_stats["num_energy_examples"]
    assert bool((counts == 0).all()) == (sampler.label == "biased")


def cases(names):
    """One alone; one on each device; two on each device, which is the default on two cores; five
    that share one.
    """
    return [(name, num_chains) for name in names for num_chains in (1, 2, 4, 5)]


@pytest.mark.slow  # the matrix has some of them in `make test`
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
@pytest.mark.parametrize(("name", "num_chains"), cases(SAMPLERS))
def test_every_sampler(name, num_chains):
    target, position = TARGETS["vector"]
    check(SAMPLERS[name](target, 0.05), num_chains, position)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
@pytest.mark.parametrize(("name", "num_chains"), cases(TESTS))
def test_every_test(name, num_chains):
    target = models.logistic(X, Y)
    gradient = gradients.control_variate(4, center=CENTER)
    check(
        amagold.amagold(
            target, step_size=0.1, num_steps=2, gradient=gradient, acceptance=TESTS[name]
        ),
        num_chains,
        CENTER,
    )
