"""What draws of each family call the parameter beside the coefficients, where there is one."""

THRESHOLD = "threshold"
NOISE_NAMES: dict[str, str | None] = {
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
