"""What an exact chain over a network's weights can do with 200 passes over MNIST.

    AMAGOLD_DATA=... python docs/network_noise.py noise     # log a of single trajectories
    AMAGOLD_DATA=... python docs/network_noise.py chains    # SGHMC, and exact chains after it
    AMAGOLD_DATA=... python docs/network_noise.py repeats   # the best of them, from other starts

Prints the figures of docs/networks.md: a network 784-128-64-10, all 60,000 images, batches of
2,000, the prior and the start of the paper's Table 2 (docs/paper.md).
"""

import sys
import tempfile
from functools import cache
from pathlib import Path

import jax
import numpy as np

import amagold
from amagold_lab.paper.images import digits
from amagold_lab.paper.network_chains import NetworkProblem, StoredNetworkChains
from amagold_lab.paper.predictions import energy_per_example, probabilities

PASSES, EVERY, NUM_AVERAGED = 200, 4, 20  # of the data; between draws; draws that predict
NOISE = [  # h, T, plan, batch
    (5e-4, 30, "iid", 2_000),
    (5e-4, 30, "epoch", 2_000),
    (5e-4, 60, "palindrome", 2_000),
    (1e-4, 30, "epoch", 2_000),
    (1e-4, 60, "palindrome", 2_000),
    (5e-4, 30, "full", 60_000),
    (2.25e-2, 10, "full", 60_000),
]
CHAINS = [(2.25e-2, 0.003), (3.5e-2, 0.02), (5e-2, 0.008)]  # h and b of the exact chains
REPEATED, REPEATS = (5e-2, 0.008), (1, 2, 3)  # chosen from the start 0, which is none of these


@cache
def problem(repeat=0):
    settings = NetworkProblem(hidden=(128, 64))
    train, test = digits("mnist", settings.num_examples, settings.num_test)
    with tempfile.TemporaryDirectory() as folder:
        networks = StoredNetworkChains(settings, train, Path(folder))
        return networks.target, networks.start(repeat), test


def settings_of(target, h, b):
    return amagold.from_sgd(h / target.num_examples, b)


def gradient_of(plan, batch_size):
    if plan == "full":
        return amagold.gradients.full()
    return amagold.gradients.minibatch(batch_size, plan=plan)


def noise(num_trials=6):
    """Trajectories with fresh momenta from the trained weights, with hardly any friction."""
    target, start, _ = problem()
    for h, num_steps, plan, batch_size in NOISE:
        sampler = amagold.amagold(
            target,
            num_steps=num_steps,
            gradient=gradient_of(plan, batch_size),
            **settings_of(target, h, 5e-6),
        )
        step, state = jax.jit(sampler.step), sampler.init(start)
        found = [
            float(step(jax.random.key(seed), state)[1].log_ratio)
            for seed in range(3 if plan == "full" else num_trials)
        ]
        mean, deviation = np.mean(found), np.std(found, ddof=1)
        print(f"| {h:g} | {num_steps} | {plan} | {mean:.2f} | {deviation:.2f} |", flush=True)


def walk(sampler, position, num_transitions, seed):
    """Positions after every transition, and the mean acceptance."""
    step, state, key = jax.jit(sampler.step), sampler.init(position), jax.random.key(seed)
    positions, accepted = [], []
    for _ in range(num_transitions):
        key, here = jax.random.split(key)
        state, info = step(here, state)
        positions.append(jax.device_get(state.position))
        accepted.append(float(info.acceptance_rate))
    return positions, float(np.mean(accepted))


def scores(draws, accepted):
    """Acceptance; error, log score and calibration of the last draws together; energy of a row."""
    target, _, test = problem()
    together = np.mean(
        [np.asarray(probabilities(draw, test.X), float) for draw in draws[-NUM_AVERAGED:]], axis=0
    )
    metrics = amagold.metrics
    return [
        accepted,
        100 * metrics.error_rate(together, test.y),
        metrics.log_score(together, test.y),
        metrics.calibration_error(together, test.y),
        float(energy_per_example(target, draws[-1])),
    ]


def show(name, found):
    accepted, error, log_score, calibration, energy = found
    print(
        f"| {name} | {accepted:.2f} | {error:.2f}% | {log_score:.4f} | {calibration:.4f} "
        f"| {energy:.3f} |",
        flush=True,
    )


def biased_walk(start, seed):
    """SGHMC for all passes: a position after each."""
    target = problem()[0]
    sampler = amagold.sghmc(
        target,
        num_steps=30,
        gradient=gradient_of("epoch", 2_000),
        resample_momentum=False,
        **settings_of(target, 5e-4, 0.01),
    )
    return walk(sampler, start, PASSES, seed)


def exact_walk(h, b, burned, seed):
    """From half of the passes on, an exact chain with whole gradients."""
    target = problem()[0]
    sampler = amagold.amagold(
        target,
        num_steps=EVERY,
        gradient=gradient_of("full", None),
        resample_momentum=False,
        **settings_of(target, h, b),
    )
    return walk(sampler, burned[PASSES // 2 - 1], PASSES // 2 // EVERY, seed)


def chains():
    """SGHMC for all passes; and for half of them, then an exact chain."""
    burned, accepted = biased_walk(problem()[1], seed=0)
    show("SGHMC", scores(burned[EVERY - 1 :: EVERY], accepted))
    for h, b in CHAINS:
        show(f"exact, h = {h:g}, b = {b:g}", scores(*exact_walk(h, b, burned, seed=1)))


def repeats():
    """The exact chain that was chosen and SGHMC, from starts that had no say in the choice."""
    found = {"SGHMC": [], "exact": []}
    for repeat in REPEATS:
        burned, accepted = biased_walk(problem(repeat)[1], seed=10 * repeat)
        found["SGHMC"].append(scores(burned[EVERY - 1 :: EVERY], accepted))
        found["exact"].append(scores(*exact_walk(*REPEATED, burned, seed=10 * repeat + 1)))
        for name, rows in found.items():
            show(f"{name}, repeat {repeat}", rows[-1])
    for name, rows in found.items():
        show(f"{name}, mean", np.mean(rows, axis=0))
        show(f"{name}, standard error", np.std(rows, axis=0, ddof=1) / len(rows) ** 0.5)
    apart = np.subtract(found["exact"], found["SGHMC"])
    show("exact - SGHMC, mean", np.mean(apart, axis=0))
    show("exact - SGHMC, standard error", np.std(apart, axis=0, ddof=1) / len(apart) ** 0.5)


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else "noise"
    {"noise": noise, "chains": chains, "repeats": repeats}[asked]()
