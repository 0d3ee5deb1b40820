"""Chains over the weights of a network (Section 5.3 of the paper): run once, kept in a folder, gone
on with where they stopped.
"""

import io
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from amagold.adaptation._sgd_burn_in import descend
from amagold.adaptation._warmup import SgdBurnIn, Warmup
from amagold.core.files import write_whole
from amagold.datasets._mnist import Images
from amagold.gradients import minibatch
from amagold.models._network import Layers, network
from amagold.samplers import Sampler, amagold, from_sgd, sghmc
from amagold.sampling._advice import SamplingWarning
from amagold.sampling._load import open_groups
from amagold.sampling._resume import resume
from amagold.sampling._run import Run
from amagold.sampling._sample import sample
from amagold.store._names import name_leaves
from amagold.store._zarr_store import ZarrStore
from amagold.target import Posterior
from amagold_lab.paper.images import NUM_CLASSES, NUM_PIXELS

# the authors' weight decay, on the summed energy; the paper does not give a prior
PRIOR_PRECISION = 5e-4
EXACT, BIASED = "AMAGOLD", "SGHMC"
WHOLE_EPOCHS, TUNED = "AMAGOLD, an epoch per test", "AMAGOLD, an epoch per test, adapted"


class NetworkProblem(NamedTuple):
    """Which network learns from which images."""

    source: str = "mnist"  # or "synthetic"
    num_examples: int = 60_000
    num_test: int = 10_000
    hidden: tuple[int, ...] = (500, 256)
    batch_size: int = 2000
    sgd_epochs: int = 3  # the paper's burn-in; its other settings are not given
    sgd_batch_size: int = 500

    @property
    def burn_in(self) -> SgdBurnIn:
        return SgdBurnIn(
            self.sgd_epochs, learning_rate=0.1, momentum=0.5, batch_size=self.sgd_batch_size
        )

    @property
    def num_weights(self) -> int:
        widths = (NUM_PIXELS, *self.hidden, NUM_CLASSES)
        return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))


class NetworkChain(NamedTuple):
    """One chain. h and b are the paper's, h for the mean energy per example."""

    method: str
    momentum_decay: float  # b
    learning_rate: float  # h
    num_steps: int = 10  # T
    num_draws: int = 60
    thin: int = 10
    repeat: int = 0
    num_warmup: int = 0
    target_acceptance: float | None = None  # adapts h in the warm-up

    @property
    def place(self) -> str:
        """Its place in the paper's table."""
        return f"b = {self.momentum_decay:g}, h = {self.learning_rate:g}"

    @property
    def name(self) -> str:
        sampler = "sghmc" if self.method == BIASED else "amagold"
        adapted = (
            ""
            if self.target_acceptance is None
            else f"-warmup{self.num_warmup}-accept{self.target_acceptance:g}"
        )
        settings = f"b{self.momentum_decay:g}-h{self.learning_rate:g}-T{self.num_steps}{adapted}"
        return f"{sampler}-{settings}-{self.num_draws}x{self.thin}-repeat{self.repeat}"


class StoredNetworkChains:
    """One network and its images, and the folder in which its chains are kept."""

    def __init__(self, problem: NetworkProblem, train: Images, folder: Path, seed: int = 0) -> None:
        self.problem, self.seed = problem, seed
        self.target: Posterior = network(
            train.X, train.y, problem.hidden, PRIOR_PRECISION**-0.5, num_classes=NUM_CLASSES
        )
        widths = "x".join(str(width) for width in problem.hidden)
        start = f"sgd{problem.sgd_epochs}x{problem.sgd_batch_size}"
        name = f"{problem.source}-{problem.num_examples}-{widths}-batch{problem.batch_size}"
        self.folder = folder / f"{name}-{start}-seed{seed}"
        self.folder.mkdir(parents=True, exist_ok=True)

    def sampler(self, chain: NetworkChain) -> Sampler:
        """h is divided by the number of examples, because the energy is their sum."""
        settings: dict[str, Any] = {
            **from_sgd(chain.learning_rate / self.target.num_examples, chain.momentum_decay),
            "num_steps": chain.num_steps,
            "gradient": minibatch(self.problem.batch_size, plan="epoch"),
            "resample_momentum": False,
        }
        return (sghmc if chain.method == BIASED else amagold)(self.target, **settings)

    def start(self, repeat: int) -> Layers:
        """Where all chains of a repeat begin: epochs of SGD from random weights, computed once."""
        path = self.folder / f"start-repeat{repeat}.npz"
        if path.is_file():
            with np.load(path) as saved:
                leaves = [saved[name] for name in name_leaves(self.target.init)]
            return jax.tree.unflatten(jax.tree.structure(self.target.init), leaves)
        seed = self._seed_of(repeat)
        row = self.target.examples.rows(np.zeros(1, np.int32))
        first = network(
            row.inputs, row.label, self.problem.hidden, num_classes=NUM_CLASSES, seed=seed
        ).init
        descended = descend(
            self.target,
            jax.tree.map(lambda leaf: leaf[None], first),
            jax.random.key(seed),
            self.problem.burn_in,
        )
        position = jax.tree.map(lambda leaf: np.asarray(leaf[0]), descended)
        content = io.BytesIO()
        np.savez(content, **name_leaves(position))
        write_whole(path, content.getvalue(), durable=True)
        return position

    def run(self, chain: NetworkChain) -> Run:
        """The chain's draws: loaded if they are all there, made or gone on with if not."""
        path = self.folder / f"{chain.name}.zarr"
        with warnings.catch_warnings():
            # one chain, far from mixed over so many weights: no advice on convergence is news
            warnings.simplefilter("ignore", SamplingWarning)
            if path.exists():
                # not by amagold.load, which would look for advice first
                stored = Run(
                    open_groups(path), ZarrStore(path, read_only=True).attributes, None, [], path
                )
                return (
                    resume(path, self.sampler(chain), progress=False)
                    if stored.is_partial
                    else stored
                )
            return sample(
                self.sampler(chain),
                num_samples=chain.num_draws,
                num_warmup=chain.num_warmup,
                num_chains=1,
                seed=self._seed_of(chain.repeat),
                init=self.start(chain.repeat),
                thin=chain.thin,
                store=path,
                progress=False,
                warmup=Warmup(target_acceptance=chain.target_acceptance),
            )

    def _seed_of(self, repeat: int) -> int:
        return 1000 * self.seed + repeat
