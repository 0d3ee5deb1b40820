"""What the numbers of the logistic regressions say: where the methods can be compared, and how they
do.
"""

from amagold_lab.paper.experiment import Numbers
from amagold_lab.paper.logistic_chains import NUM_STEPS
from amagold_lab.paper.logistic_errors import seconds_to

BOTH = ("AMAGOLD", "SGHMC")
METHODS = (*BOTH, "HMC", "L2MC")
PLANNED = "tuned HMC"
REASONABLE = 0.2  # the paper calls acceptance rates of 20% to 80% reasonable
CLEAR = 3.0  # times the error that Monte Carlo alone would leave


def compared(numbers: Numbers, table: str) -> list[int]:
    """Places among the step sizes where AMAGOLD's acceptance is reasonable and the burn-in long
    enough to forget the start.

    An accepted trajectory carries a coefficient about epsilon T far, so that one of standard
    deviation s forgets where it was in about 2 (s / (epsilon T))^2 accepted ones; four times that
    for the widest.
    """
    widest = numbers["problems"][table]["widest"]
    places = []
    for at, (step, row) in enumerate(
        zip(numbers["step_sizes"], numbers["methods"]["AMAGOLD"]["sweep"][table], strict=True)
    ):
        needed = 4.0 * 2.0 * (widest / (step * NUM_STEPS)) ** 2
        if row["acceptance"] >= REASONABLE and numbers["length"] * row["acceptance"] >= needed:
            places.append(at)
    return places


def ratios(numbers: Numbers) -> dict[tuple[str, float], float]:
    """SGHMC's error over AMAGOLD's, by table and step size, where they are compared and SGHMC's is
    clearly more than Monte Carlo's.

    AMAGOLD's is at least what the scatter of its chains makes one expect, lest it be credited for
    luck.
    """
    found = {}
    for table in numbers["tables"]:
        exact, biased = (numbers["methods"][method]["sweep"][table] for method in BOTH)
        for at in compared(numbers, table):
            if biased[at]["excess"] >= CLEAR:
                found[table, numbers["step_sizes"][at]] = biased[at]["error"] / max(
                    exact[at]["error"], exact[at]["noise"]
                )
    return found


def times(numbers: Numbers, table: str, step: float) -> tuple[float, dict[str, float]]:
    """An error that all the exact methods come down to, and the seconds that each method takes for
    it.
    """
    races = {method: numbers["methods"][method]["race"][table][f"{step:g}"] for method in METHODS}
    level = max(races[method]["error"][-1] for method in METHODS if method != "SGHMC")
    races[PLANNED] = numbers["methods"][PLANNED]["race"][table]
    return level, {method: seconds_to(found, level) for method, found in races.items()}


def speed_up(numbers: Numbers, table: str, step: float) -> float:
    """The seconds of the faster of HMC and L2MC over AMAGOLD's, for the same error."""
    needed = times(numbers, table, step)[1]
    return min(needed["HMC"], needed["L2MC"]) / needed["AMAGOLD"]


def draws_in_words(numbers: Numbers) -> str:
    """How many draws an estimate is made of."""
    once = numbers["num_chains"] * numbers["length"]
    longer = " and ".join(
        f"{step:g}" for step in numbers["long_steps"] if step in numbers["step_sizes"]
    )
    more = f" ({once * numbers['long_segments']:,} at {longer})" if longer else ""
    return f"{once * numbers['num_segments']:,} draws{more} of {numbers['num_chains']} chains"


def planned_in_words(numbers: Numbers) -> str:
    """Where the tuned full-batch sampler ends."""
    races = numbers["methods"][PLANNED]["race"]
    ends = (
        f"{races[table]['error'][-1]:.1g} after {races[table]['seconds'][-1]:.2g} s"
        for table in numbers["tables"]
    )
    return "ends at an MSE of " + " and ".join(ends)
