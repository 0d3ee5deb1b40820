"""The families that a table can be fitted with."""

from amagold.models._noise_names import NOISE_NAMES

FAMILIES = NOISE_NAMES

# what others call them
OTHER_NAMES = {
    "binomial": "'logistic', with trials=",
    "bernoulli": "'logistic'",
    "gaussian": "'linear'",
    "normal": "'linear'",
    "student": "'robust'",
    "multinomial": "'softmax'",
    "categorical": "'softmax'",
    "cumulative": "'ordinal'",
}

# those that random effects are known for
GROUPED = ("logistic", "probit", "poisson", "negative_binomial", "linear")


# whose means are z, and whose outcomes move along with it: numbers far from zero are looked at from
# a place among them, as float32 needs
MOVING_ALONG = ("linear", "robust")


def noise_of(family: str, has_groups: bool) -> str | None:
    """What the parameter beside the coefficients is called; with random effects the shape of
    counts is given.
    """
    return None if has_groups and family == "negative_binomial" else FAMILIES[family]
