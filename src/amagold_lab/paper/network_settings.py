"""The chains behind the paper's Table 2 and Figure 5, and how an experiment goes through them."""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from amagold.datasets._mnist import Images
from amagold_lab.paper.finished_parts import FinishedParts
from amagold_lab.paper.images import digits
from amagold_lab.paper.network_chains import (
    BIASED,
    EXACT,
    TUNED,
    WHOLE_EPOCHS,
    NetworkChain,
    NetworkProblem,
    StoredNetworkChains,
)

SMALL, LARGE = 5e-6, 0.01  # the paper's b
RATES = (0.0005, 0.001)  # its h


class NetworkSettings(NamedTuple):
    problem: NetworkProblem
    chains: tuple[NetworkChain, ...]
    num_repeats: int = 1  # of every chain, each from its own start

    @property
    def all_chains(self) -> list[NetworkChain]:
        return [
            chain._replace(repeat=repeat)
            for chain in self.chains
            for repeat in range(self.num_repeats)
        ]


Evaluate = Callable[[StoredNetworkChains, Images, NetworkChain], dict[str, Any]]


def evaluate_all(
    settings: NetworkSettings, finished: FinishedParts, evaluate: Evaluate
) -> dict[str, dict[str, list[Any]]]:
    """What `evaluate` finds about every chain, by method, by place in the table, and by repeat."""
    problem = settings.problem

    @cache  # only if a part is missing
    def networks() -> tuple[StoredNetworkChains, Images]:
        train, test = digits(problem.source, problem.num_examples, problem.num_test)
        # beside the experiments' own parts, because two of them look at the same chains
        return StoredNetworkChains(
            problem, train, finished.folder.parent / "networks", finished.seed
        ), test

    methods: dict[str, dict[str, list[Any]]] = {}
    for chain in settings.all_chains:
        found = finished.part(
            chain.name,
            {**problem._asdict(), **chain._asdict()},
            lambda chain=chain: evaluate(*networks(), chain),
        )
        methods.setdefault(chain.method, {}).setdefault(chain.place, []).append(found)
    return methods


def _table(chain: NetworkChain) -> tuple[NetworkChain, ...]:
    """The chain at all four places of the paper's table."""
    return tuple(
        chain._replace(momentum_decay=decay, learning_rate=rate)
        for decay, rate in product((SMALL, LARGE), RATES)
    )


PAPER = NetworkSettings(
    NetworkProblem(),
    (
        *_table(NetworkChain(EXACT, SMALL, RATES[0])),
        # until well after it has collapsed, which takes longer with smaller steps
        NetworkChain(BIASED, SMALL, RATES[0], num_steps=30, num_draws=75),
        NetworkChain(BIASED, SMALL, RATES[1], num_steps=30, num_draws=60),
        # the 6,000 gradients that AMAGOLD has
        NetworkChain(BIASED, LARGE, RATES[0], num_steps=30, num_draws=50, thin=4),
        NetworkChain(BIASED, LARGE, RATES[1], num_steps=30, num_draws=50, thin=4),
        NetworkChain(WHOLE_EPOCHS, SMALL, RATES[0], num_steps=30, num_draws=50, thin=4),
        NetworkChain(
            TUNED,
            5e-4,
            RATES[0],
            num_steps=30,
            num_draws=50,
            thin=4,
            num_warmup=40,
            target_acceptance=0.9,
        ),
    ),
)
QUICK = NetworkSettings(
    NetworkProblem(
        "mnist", 2000, 2000, (50, 50), batch_size=100, sgd_epochs=10, sgd_batch_size=100
    ),
    (
        *_table(NetworkChain(EXACT, SMALL, RATES[0], num_draws=40, thin=16)),
        *_table(NetworkChain(BIASED, SMALL, RATES[0], num_steps=20, num_draws=40, thin=8)),
    ),
)
TINY = NetworkSettings(
    NetworkProblem("synthetic", 200, 100, (8,), batch_size=20, sgd_epochs=2, sgd_batch_size=20),
    (
        *_table(NetworkChain(EXACT, SMALL, RATES[0], num_draws=4, thin=2)),
        *_table(NetworkChain(BIASED, SMALL, RATES[0], num_steps=10, num_draws=4, thin=2)),
    ),
)
PRESETS = {"tiny": TINY, "quick": QUICK, "paper": PAPER}
