"""The paper's Figure 5: how sure the networks of Table 2 are of letters, having learnt digits."""

from itertools import combinations
from typing import Any

import numpy as np

from amagold.datasets._mnist import Images
from amagold_lab.paper.experiment import Check, Experiment, Numbers, ResultTable
from amagold_lab.paper.finished_parts import FinishedParts
from amagold_lab.paper.images import letters
from amagold_lab.paper.network_chains import BIASED, EXACT, NetworkChain, StoredNetworkChains
from amagold_lab.paper.network_settings import PRESETS, RATES, SMALL, NetworkSettings, evaluate_all
from amagold_lab.paper.predictions import ENTROPIES, SURE, uncertainty


def compute(settings: NetworkSettings, finished: FinishedParts) -> Numbers:
    def evaluate(
        networks: StoredNetworkChains, test: Images, chain: NetworkChain
    ) -> dict[str, Any]:
        run, strange = (
            networks.run(chain),
            letters(settings.problem.source, settings.problem.num_test),
        )
        return {
            kind: uncertainty(run, networks.target, images)
            for kind, images in (("letters", strange), ("digits", test.X))
        }

    methods = evaluate_all(settings, finished, evaluate)
    return {
        "problem": settings.problem._asdict(),
        "entropies": ENTROPIES.tolist(),
        "methods": methods,
    }


def below(numbers: Numbers, method: str) -> dict[str, np.ndarray]:
    """At every place of the table, the share of letters below each entropy, the mean over
    repeats.
    """
    places = numbers["methods"][method]
    return {
        place: np.mean([chain["letters"]["below"] for chain in chains], axis=0)
        for place, chains in places.items()
    }


def mean_of(numbers: Numbers, method: str, word: str, kind: str = "letters") -> dict[str, float]:
    """At every place of the table, a mean entropy."""
    places = numbers["methods"][method]
    return {
        place: float(np.mean([chain[kind][word] for chain in chains]))
        for place, chains in places.items()
    }


def widest(numbers: Numbers, method: str) -> float:
    """The largest gap between the distributions of two settings."""
    return max(
        float(np.abs(one - other).max())
        for one, other in combinations(below(numbers, method).values(), 2)
    )


def checks(numbers: Numbers) -> list[Check]:
    exact, biased = (mean_of(numbers, method, "sure_of_draws") for method in (EXACT, BIASED))
    small = [NetworkChain(BIASED, SMALL, rate).place for rate in RATES]
    return [
        # 0 would be the same distribution, 1 one without overlap
        Check(
            "Largest gap between AMAGOLD's distributions of entropy at two settings",
            widest(numbers, EXACT),
            "<=",
            0.3,
        ),
        Check(
            "The same over SGHMC's",
            widest(numbers, EXACT) / max(widest(numbers, BIASED), 1e-6),
            "<=",
            0.6,
        ),
        Check(
            "Share of letters that single draws of SGHMC at the smaller b are sure of, over "
            "AMAGOLD's share, at least",
            min(biased[place] / max(exact[place], 1e-6) for place in small),
            ">=",
            2.0,
        ),
    ]


def pictures(numbers: Numbers) -> dict[str, Any]:
    from amagold_lab.paper import network_pictures

    return {"": network_pictures.entropies(numbers)}


def tables(numbers: Numbers) -> list[ResultTable]:
    header = (
        "algorithm",
        "setting",
        "letters",
        "letters, single draws",
        "digits",
        "digits, single draws",
    )
    header = (*header, "sure of letters", "sure of letters, single draws")
    rows = []
    for method in numbers["methods"]:
        for place in numbers["methods"][method]:
            means = [
                mean_of(numbers, method, word, kind)[place]
                for kind in ("letters", "digits")
                for word in ("mean", "mean_of_draws")
            ]
            sure = [mean_of(numbers, method, word)[place] for word in ("sure", "sure_of_draws")]
            rows.append(
                (
                    method,
                    place,
                    *(f"{value:.3f}" for value in means),
                    *(f"{100 * share:.1f}%" for share in sure),
                )
            )
    title = (
        "Mean entropy in nats, of the last 20 draws together and of single ones (knowing nothing "
        f"is {np.log(10.0):.3f}), and the share of "
        f"letters with an entropy below {SURE:g}"
    )
    return [
        ResultTable(
            f"{title}. The paper draws the distribution and prints no number.", header, rows
        )
    ]


EXPERIMENT = Experiment(
    name="uncertainty",
    title="Figure 5: entropy of the predictions for letters (notMNIST)",
    claim="AMAGOLD's uncertainty about letters is much the same at every b and h, while SGHMC's "
    "is not: at b = 5e-6 its draws are "
    "overconfident.",
    choices=(
        "The chains are those of Table 2. The entropy is that of the mean prediction of the last "
        "20 draws kept.",
        "Draws of a chain that diverges are each sure of one class, but not of the same one, so "
        "their mean looks unsure; once it has "
        "collapsed, some of them are the same for every image. Overconfidence is therefore judged "
        "by single draws.",
        "The letters are the 10,000 test images of notMNIST in MNIST's format, scaled like the "
        "digits.",
    ),
    settings=PRESETS,
    duration={
        "tiny": "10 seconds, one after bnn",
        "quick": "a minute, seconds after bnn",
        "paper": "an hour and a half, minutes after bnn",
    },
    num_parts=lambda settings: len(settings.all_chains),
    compute=compute,
    checks=checks,
    pictures=pictures,
    tables=tables,
)
