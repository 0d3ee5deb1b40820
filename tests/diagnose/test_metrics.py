"""Scores of predictions are what they say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from amagold import metrics

PREDICTED = np.array([[0.7, 0.3], [0.4, 0.6], [0.9, 0.1]])


def test_scores():
    labels = np.array([0, 0, 1])
    assert_allclose(metrics.error_rate(PREDICTED, labels), 2 / 3)
    assert_allclose(metrics.log_score(PREDICTED, labels), np.log([0.7, 0.4, 0.1]).mean())
    assert_allclose(metrics.brier_score(PREDICTED, labels), 2 * np.mean([0.09, 0.36, 0.81]))
    assert_allclose(metrics.entropy([[1.0, 0.0], [0.5, 0.5]]), [0.0, np.log(2.0)])


def test_what_is_no_number_is_wrong():
    predicted = np.array([[0.7, 0.3], [np.nan, np.nan]])
    assert metrics.error_rate(predicted, [0, 0]) == 0.5
    assert_allclose(metrics.calibration_error(predicted, [0, 0]), (0.3 + 1.0) / 2)


def test_calibration_error():
    sure = np.tile([0.8, 0.2], (10, 1))
    assert_allclose(metrics.calibration_error(sure, [0] * 8 + [1] * 2), 0.0, atol=1e-12)
    assert_allclose(metrics.calibration_error(sure, [0] * 5 + [1] * 5), 0.3)


def test_selective_risk():
    found = metrics.selective_risk(PREDICTED, [0, 0, 0])
    assert_allclose(found.coverage, [1 / 3, 2 / 3, 1.0])
    assert_allclose(found.risk, [0.0, 0.0, 1 / 3])  # the unsure one is wrong
    assert_allclose(found.area, 1 / 9)
    worst = metrics.selective_risk(PREDICTED, [0, 0, 0], uncertainty=[2.0, 1.0, 3.0])
    assert_allclose(worst.risk, [1.0, 0.5, 1 / 3])


def test_auroc_is_the_share_of_pairs():
    generator = np.random.default_rng(0)
    known, strange = generator.integers(0, 9, 40), generator.integers(3, 12, 30)
    pairs = strange[:, None] - known
    assert_allclose(metrics.auroc(known, strange), np.mean((pairs > 0) + 0.5 * (pairs == 0)))
    assert metrics.auroc([0.0, 1.0], [2.0]) == 1.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: metrics.log_score(PREDICTED, [0, 0]), "labels must be one whole number"),
        (lambda: metrics.log_score(PREDICTED, [0, 0, 2]), "between 0 and 1"),
        (lambda: metrics.log_score(PREDICTED[None], [0, 0, 1]), "average over draws"),
        (lambda: metrics.selective_risk(PREDICTED, [0, 0, 0], [1.0]), "uncertainty must"),
        (lambda: metrics.auroc([], [1.0]), "one number per input"),
    ],
)
def test_sentences(call, words):
    with pytest.raises(ValueError, match=words):
        call()
