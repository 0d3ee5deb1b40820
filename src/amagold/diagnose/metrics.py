"""How good predictions are: errors, scores, calibration, and whether doubt is where it should be.

`probabilities` has a row per input and a column per class, as `amagold.predict` returns it;
`labels` are classes as whole numbers from 0.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

NUM_BINS = 15  # of the calibration error, usual in the literature


def error_rate(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Share of inputs whose most probable class is another; a prediction that is not a number is
    wrong.
    """
    predicted, labels = _checked(probabilities, labels)
    return float(np.mean(~_is_right(predicted, labels)))


def log_score(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Mean log probability of the true class: the larger the better, zero at best."""
    predicted, labels = _checked(probabilities, labels)
    chosen = predicted[np.arange(len(labels)), labels]
    # a probability of zero costs what the smallest float32 does, 87 nats, and not everything
    return float(np.log(np.maximum(chosen, np.finfo(np.float32).tiny)).mean())


def brier_score(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Mean squared distance of the probabilities from the truth, sum_k (p_k - [k = y])^2: from 0,
    the best, to 2.
    """
    predicted, labels = _checked(probabilities, labels)
    truth = np.arange(predicted.shape[1]) == labels[:, None]
    return float(np.mean(np.sum((predicted - truth) ** 2, axis=1)))


def calibration_error(
    probabilities: ArrayLike, labels: ArrayLike, num_bins: int = NUM_BINS
) -> float:
    """Expected calibration error: how far confidence and accuracy are apart, over bins of
    confidence of equal width.
    """
    predicted, labels = _checked(probabilities, labels)
    # a prediction that is not a number is wrong with all confidence
    confidence = np.nan_to_num(predicted.max(axis=1), nan=1.0)
    right = _is_right(predicted, labels)
    places = np.minimum((confidence * num_bins).astype(int), num_bins - 1)
    # sum over bins of (share of inputs) |mean confidence - accuracy|
    gaps = np.bincount(places, confidence - right, num_bins)
    return float(np.abs(gaps).sum() / len(labels))


def entropy(probabilities: ArrayLike) -> np.ndarray:
    """-sum_k p_k log p_k over the last axis, in nats: from 0 (sure) to the log of the number of
    classes (knows nothing).
    """
    predicted = np.asarray(probabilities, np.float64)
    return -np.sum(predicted * np.log(np.maximum(predicted, np.finfo(np.float64).tiny)), axis=-1)


class RiskCoverage(NamedTuple):
    """How errors fall as unsure inputs are left to somebody else.

    Attributes:
      coverage: shares of inputs that are answered, the surest first.
      risk: the share of wrong answers among them.
    """

    coverage: np.ndarray
    risk: np.ndarray

    @property
    def area(self) -> float:
        """The mean risk over all coverages: the lower the better."""
        return float(self.risk.mean())


def selective_risk(
    probabilities: ArrayLike, labels: ArrayLike, uncertainty: ArrayLike | None = None
) -> RiskCoverage:
    """The error rate among the surest inputs, for every share of them.

    Args:
      uncertainty: one number per input, the larger the less sure; None takes one minus the largest
        probability.
    """
    predicted, labels = _checked(probabilities, labels)
    doubt = 1.0 - predicted.max(axis=1) if uncertainty is None else _numbers(uncertainty)
    if doubt.shape != labels.shape:
        raise ValueError(
            f"uncertainty must have one number for each of the {len(labels)} inputs, got shape "
            f"{doubt.shape}; give for example the entropy"
        )
    order = np.argsort(np.nan_to_num(doubt, nan=np.inf), kind="stable")
    answered = np.arange(1, len(labels) + 1)
    wrong = np.cumsum(~_is_right(predicted, labels)[order])
    return RiskCoverage(answered / len(labels), wrong / answered)


def auroc(known: ArrayLike, strange: ArrayLike) -> float:
    """How well a number tells strange inputs from known ones: the probability that it is larger for
    a strange one, ties counted half. 0.5 is chance, 1 is perfect.

    Args:
      known: the uncertainty (entropy or mutual information, say) of inputs like the training data.
      strange: that of inputs from elsewhere.
    """
    ours, theirs = _numbers(known), _numbers(strange)
    if not ours.size or not theirs.size or ours.ndim != 1 or theirs.ndim != 1:
        raise ValueError(
            f"known and strange must be one number per input each, got shapes {ours.shape} and "
            f"{theirs.shape}; give for example the entropies of two predictions"
        )
    ours = np.sort(ours)
    below = np.searchsorted(ours, theirs, side="left")
    up_to = np.searchsorted(ours, theirs, side="right")
    return float((below + up_to).mean() / (2.0 * len(ours)))


def _numbers(values: ArrayLike) -> np.ndarray:
    return np.asarray(values, np.float64)


def _is_right(predicted: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return (predicted.argmax(axis=1) == labels) & np.isfinite(predicted).all(axis=1)


def _checked(probabilities: ArrayLike, labels: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    predicted, classes = _numbers(probabilities), np.asarray(labels)
    if predicted.ndim != 2 or not len(predicted):
        raise ValueError(
            "probabilities must have a row per input and a column per class, got shape "
            f"{predicted.shape}; average over draws first"
        )
    if classes.shape != predicted.shape[:1] or not np.issubdtype(classes.dtype, np.integer):
        raise ValueError(
            f"labels must be one whole number for each of the {len(predicted)} inputs, got "
            f"{classes.dtype} of shape {classes.shape}; number the classes from 0"
        )
    if classes.min() < 0 or classes.max() >= predicted.shape[1]:
        raise ValueError(
            f"labels must lie between 0 and {predicted.shape[1] - 1}, the columns of "
            f"probabilities, got {classes.min()} to {classes.max()}; number the classes from 0"
        )
    return predicted, classes
