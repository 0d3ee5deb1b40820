"""The families that a table can be fitted with."""

from amagold.tables._term_scale import THRESHOLD

# what the noise's scale is called, where there is one
FAMILIES: dict[str, str | None] = {
    "logistic": None,
    "probit": None,
    "poisson": None,
    "linear": "sigma",
    "robust": "sigma",
    "negative_binomial": "alpha",
    "gamma": "alpha",
    "softmax": None,
    "ordinal": THRESHOLD,
}
