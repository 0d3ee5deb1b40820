"""What an arrow mass is worth on a mixed model, against the best diagonal one: effective draws by
gradient over all data. Printed; docs/samplers.md has the figures.
"""

from dataclasses import replace

import arviz_stats
import jax
import numpy as np
import pytest

import amagold
from amagold import models
from amagold.core import trees
from amagold.mode._arrow_curvature import effects_curvature
from amagold.mode._effect_mode import find_reference
from amagold.trajectory._named_mass import arrow_of

NUM_ROWS, NUM_GROUPS, NUM_COEFFICIENTS = 20_000, 500, 5
NUM_DRAWS, NUM_CHAINS = 400, 4
LENGTHS = (8, 16)  # steps of a trajectory: shorter and longer ones are worse for both


def random_intercepts():
    generator = np.random.default_rng(0)
    group = generator.integers(0, NUM_GROUPS, NUM_ROWS)
    x = generator.normal(size=(NUM_ROWS, NUM_COEFFICIENTS - 1))
    slopes = 0.3 * generator.normal(size=NUM_COEFFICIENTS - 1)
    z = -0.3 + x @ slopes + generator.normal(size=NUM_GROUPS)[group]
    y = generator.random(NUM_ROWS) < 1.0 / (1.0 + np.exp(-z))
    return models.mixed(x, y, {"1|g": group})


def effective_draws(target, mass, starts, num_steps):
    """By 1,000 gradients: the least of coefficients, of the scale, and of all effects."""
    sampler = amagold.l2mc(
        target, step_size=0.2, num_steps=num_steps, friction=0.3 / num_steps, mass=mass
    )
    run = amagold.sample(
        replace(sampler, jitter=0.3),
        NUM_DRAWS,
        200,
        num_chains=NUM_CHAINS,
        progress=False,
        init_per_chain=starts,
        warmup=amagold.Warmup(target_acceptance=0.8),
    )
    found = {}
    for name in run.posterior:
        values = run.posterior[name].to_numpy().reshape(NUM_CHAINS, NUM_DRAWS, -1)
        each = [float(arviz_stats.ess(column)) for column in np.moveaxis(values, -1, 0)]
        found[name] = 1_000.0 * min(each) / (NUM_CHAINS * NUM_DRAWS * num_steps)
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_an_arrow_is_worth_several_diagonals():
    target = random_intercepts()
    sums = find_reference(target)
    arrow = arrow_of(effects_curvature(target, sums))
    # what a diagonal estimated from endless draws would come to
    masses = {"diagonal": 1.0 / np.asarray(arrow.variances()), "arrow": arrow}
    center = trees.as_position(dict(sums.position))
    keys = jax.random.split(jax.random.key(0), NUM_CHAINS)
    noise = jax.vmap(lambda key: arrow.velocity(amagold.normal_like(key, center)))(keys)
    starts = target.transform(jax.tree.map(np.add, center, noise))
    best = {}
    for name, mass in masses.items():
        for num_steps in LENGTHS:
            found = effective_draws(target, mass, starts, num_steps)
            said = ", ".join(f"{key} {value:.3g}" for key, value in found.items())
            print(f"{name} mass, {num_steps} steps, effective draws by 1,000 gradients: {said}")
            best[name] = max(best.get(name, 0.0), min(found.values()))
    print(f"the best of each: {best['arrow']:.3g} against {best['diagonal']:.3g}")
    assert best["arrow"] > 2.0 * best["diagonal"]
