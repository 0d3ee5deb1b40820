"""What the families of regressions are called, and what their coefficients mean."""

from typing import NamedTuple


class FamilyWords(NamedTuple):
    """How a family is told to people; {outcome} and {event} are put in."""

    asks: str  # what changes with the predictors
    model: str
    scale: str  # what a coefficient is a difference of
    ratio: str | None  # what exp(coefficient) is; None where it is nothing
    effect: str  # what an average marginal effect is a difference of
    predicted: str  # what a prediction is


CHANCE = "probability that {event}"
COUNT = "expected {outcome}"
WORDS = {
    "logistic": FamilyWords(
        "the odds that {event}",
        "{event} with probability p, and log(p / (1 − p)) is the intercept plus a coefficient "
        "times each predictor",
        "log odds",
        "odds ratio",
        CHANCE,
        CHANCE,
    ),
    "probit": FamilyWords(
        "the probability that {event}",
        "{event} with probability Φ(z), Φ the normal distribution function, and z is the "
        "intercept plus a coefficient times each predictor",
        "z, the normal quantile of the probability",
        None,
        CHANCE,
        CHANCE,
    ),
    "poisson": FamilyWords(
        "the rate of {outcome}",
        "{outcome} is a count with a Poisson distribution, and the logarithm of its rate is the "
        "intercept plus a coefficient times each predictor",
        "log rate",
        "rate ratio",
        COUNT,
        COUNT,
    ),
    "negative_binomial": FamilyWords(
        "the rate of {outcome}",
        "{outcome} is a count with a negative binomial distribution, which may spread more than a "
        "Poisson; the logarithm of its rate is the intercept plus a coefficient times each "
        "predictor",
        "log rate",
        "rate ratio",
        COUNT,
        COUNT,
    ),
    "gamma": FamilyWords(
        "the mean of {outcome}",
        "{outcome} is positive with a gamma distribution, and the logarithm of its mean is the "
        "intercept plus a coefficient times each predictor",
        "log mean",
        "ratio of means",
        COUNT,
        COUNT,
    ),
    "linear": FamilyWords(
        "the mean of {outcome}",
        "{outcome} is the intercept plus a coefficient times each predictor, plus normal noise of "
        "standard deviation sigma",
        "{outcome}",
        None,
        COUNT,
        COUNT,
    ),
    "robust": FamilyWords(
        "the centre of {outcome}",
        "{outcome} is the intercept plus a coefficient times each predictor, plus noise of scale "
        "sigma from a Student t distribution, whose long tails let outliers be",
        "{outcome}",
        None,
        COUNT,
        COUNT,
    ),
}
OTHER = FamilyWords(
    "{outcome}",
    "the distribution of {outcome} depends on the intercept plus a coefficient times each "
    "predictor",
    "the linear predictor",
    None,
    "{outcome}",
    "{outcome}",
)


def family_words(family: str, outcome: str, event: str) -> FamilyWords:
    """The words of a family, about this outcome."""
    words = WORDS.get(family, OTHER)
    return FamilyWords(*(text and _filled(text, outcome, event) for text in words))


def _filled(text: str, outcome: str, event: str) -> str:
    # not str.format: the names may hold braces
    parts = text.split("{outcome}")
    return outcome.join(event.join(part.split("{event}")) for part in parts)
