"""What the families of regressions are called, and what their coefficients mean."""

from typing import NamedTuple


class FamilyWords(NamedTuple):
    """How a family is told to people; {outcome} and {event} are put in."""

    asks: str  # what changes with the predictors
    model: str
    scale: str  # what a coefficient is a difference of
    ratio: str  # what exp(coefficient) is; empty where it is nothing
    effect: str  # what an average marginal effect is a difference of


SUM = "the intercept plus a coefficient times each predictor"
CHANCE = "probability that {event}"
MEAN = "expected {outcome}"
WORDS = {
    "logistic": FamilyWords(
        "the odds that {event}",
        f"The log odds that {{event}} are {SUM}",
        "log odds",
        "odds ratio",
        CHANCE,
    ),
    "probit": FamilyWords(
        "the probability that {event}",
        f"The probability that {{event}} is \N{GREEK CAPITAL LETTER PHI}(z), the normal "
        f"distribution function at z, which is {SUM}",
        "z, the normal quantile of the probability",
        "",
        CHANCE,
    ),
    "ordinal": FamilyWords(
        "the odds of a higher {outcome}",
        "The log odds that {outcome} is above a level are a coefficient times each predictor, "
        "less that level's threshold",
        "log odds",
        "odds ratio",
        MEAN,
    ),
    "softmax": FamilyWords(
        "the class of {outcome}",
        f"Each class of {{outcome}} has a score, {SUM}, and is as likely as exp(score) is large",
        "a class's score",
        "",
        "probability of a class",
    ),
    "poisson": FamilyWords(
        "the rate of {outcome}",
        f"Counts {{outcome}} have a Poisson distribution, whose log rate is {SUM}",
        "log rate",
        "rate ratio",
        MEAN,
    ),
    "negative_binomial": FamilyWords(
        "the rate of {outcome}",
        "Counts {outcome} have a negative binomial distribution, which may spread more than a "
        f"Poisson and whose log rate is {SUM}",
        "log rate",
        "rate ratio",
        MEAN,
    ),
    "gamma": FamilyWords(
        "the mean of {outcome}",
        f"Positive numbers {{outcome}} have a gamma distribution, whose log mean is {SUM}",
        "log mean",
        "ratio of means",
        MEAN,
    ),
    "linear": FamilyWords(
        "the mean of {outcome}",
        f"The mean of {{outcome}} is {SUM}, and the noise about it is normal with standard "
        "deviation sigma",
        "{outcome}",
        "",
        MEAN,
    ),
    "robust": FamilyWords(
        "the centre of {outcome}",
        f"The centre of {{outcome}} is {SUM}, and the noise about it has scale sigma and the long "
        "tails of a Student t distribution, which let outliers be",
        "{outcome}",
        "",
        MEAN,
    ),
}
OTHER = FamilyWords("{outcome}", f"The distribution of {{outcome}} depends on {SUM}", "z", "", MEAN)


def family_words(family: str, outcome: str, event: str) -> FamilyWords:
    """The words of a family, about this outcome."""
    return FamilyWords(*(_filled(text, outcome, event) for text in WORDS.get(family, OTHER)))


def _filled(text: str, outcome: str, event: str) -> str:
    # not str.format, nor one after the other: the names may hold braces
    parts = text.split("{outcome}")
    return outcome.join(event.join(part.split("{event}")) for part in parts)
