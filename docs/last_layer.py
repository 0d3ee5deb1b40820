"""An exact last layer on MNIST, beside the trained network that it is the last layer of.

    AMAGOLD_DATA=... python docs/last_layer.py [WIDTH ...]     # hidden layers; 128 64 unless told

Prints the figures of docs/networks.md.
"""

import sys
import tempfile
import time
import warnings
from pathlib import Path

import jax
import numpy as np

import amagold
from amagold_lab.paper.images import digits, letters
from amagold_lab.paper.network_chains import NetworkProblem, StoredNetworkChains
from amagold_lab.paper.predictions import probabilities


def features(layers, rows):
    for layer in layers[:-1]:
        rows = jax.nn.relu(rows @ layer["weights"] + layer["biases"])
    return rows


def scores(name, predicted, labels, strange, seconds=""):
    metrics = amagold.metrics
    entropy = metrics.entropy
    print(
        f"| {name} | {100 * metrics.error_rate(predicted, labels):.2f}% "
        f"| {metrics.log_score(predicted, labels):.4f} "
        f"| {metrics.brier_score(predicted, labels):.4f} "
        f"| {metrics.calibration_error(predicted, labels):.4f} "
        f"| {metrics.selective_risk(predicted, labels).area:.4f} "
        f"| {metrics.auroc(entropy(predicted), entropy(strange)):.3f} | {seconds} |",
        flush=True,
    )


def main(widths, num_samples=250, num_chains=4):
    problem = NetworkProblem(hidden=widths)
    train, test = digits("mnist", problem.num_examples, problem.num_test)
    strange = letters("mnist", problem.num_test)
    with tempfile.TemporaryDirectory() as folder:
        trained = StoredNetworkChains(problem, train, Path(folder)).start(0)
    print("| | error | log score | Brier | calibration | selective risk | AUROC of letters | |")
    print("|---|---|---|---|---|---|---|---|")
    here, elsewhere = (np.asarray(probabilities(trained, rows)) for rows in (test.X, strange))
    scores("trained", here, test.y, elsewhere)
    begun = time.perf_counter(), time.process_time()
    layer = amagold.last_layer(lambda rows: features(trained, rows), train.X, train.y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", amagold.SamplingWarning)
        run = amagold.sample(layer.posterior, num_samples, num_chains=num_chains, progress=False)
    known, unknown = (amagold.predict(run, layer, rows) for rows in (test.X, strange))
    took = time.perf_counter() - begun[0], time.process_time() - begun[1]
    words = f"{took[0]:.0f} s ({took[1]:.0f} s of processor)"
    scores("last layer", known.probabilities, test.y, unknown.probabilities, words)
    print(run.plan)
    print(run)
    print("smallest effective draws", amagold.minimum_ess(run.posterior))
    print(
        "AUROC of letters by mutual information",
        amagold.metrics.auroc(known.mutual_information, unknown.mutual_information),
    )


if __name__ == "__main__":
    main(tuple(int(word) for word in sys.argv[1:]) or (128, 64))
