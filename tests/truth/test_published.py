"""Posteriors of posteriordb as NumPyro models and by hand: means and mean squares are the published
ones within joint Monte Carlo error, or the run warned.
"""

import json

import numpy as np
import pytest
from calibration import z_score
from false_alarms import threshold

pytest.importorskip("numpyro")
import published_table
from published import MADE, OURS, THEIRS, moments_of
from published_suite import POSTERIORS

WAYS = ("NumPyro", "by hand")


def test_there_are_fifteen_and_most_references_are_their_own():
    assert len(POSTERIORS) >= 15
    theirs = set(json.loads(THEIRS.read_text()))
    assert sum((each.moments or each.name) in theirs for each in POSTERIORS) >= 13
    assert set(json.loads(OURS.read_text())) == set(MADE)
    for posterior in POSTERIORS:
        for moments in moments_of(posterior):
            assert moments.square > moments.mean**2


def test_rates_are_those_of_formulas():
    """Beta(6, 6), Beta(8, 4) and Beta(11, 11)."""
    shapes = {"theta1": (6.0, 6.0), "theta2": (8.0, 4.0), "theta": (11.0, 11.0)}
    for posterior in POSTERIORS:
        for moments in moments_of(posterior) if posterior.name.startswith("Rate") else ():
            a, b = shapes[moments.name]
            mean = a / (a + b)
            square = mean * (a + 1.0) / (a + b + 1.0)
            limit = threshold(6)
            assert abs(moments.mean - mean) < limit * moments.mean_error
            assert abs(moments.square - square) < limit * moments.square_error


def scores_of(posterior, draws):
    """z of means and mean squares."""
    found = []
    for moments in moments_of(posterior):
        series = np.float64(moments.of(draws))
        found.append(z_score(series, moments.mean, moments.mean_error))
        found.append(z_score(series**2, moments.square, moments.square_error))
    return found


def test_a_mean_that_is_off_by_a_fifth_is_seen():
    posterior = next(each for each in POSTERIORS if each.name == "wells_dist100ars")
    random = np.random.default_rng(0)
    alpha, *slopes = (
        each.mean + (each.square - each.mean**2) ** 0.5 * random.normal(size=(4, 1000))
        for each in moments_of(posterior)
    )
    draws = {"alpha": alpha, "beta": np.stack(slopes, axis=-1)}
    limit = threshold(2 * sum(len(moments_of(each)) for each in POSTERIORS) * len(WAYS))
    assert np.max(np.abs(scores_of(posterior, draws))) < limit
    shifted = draws | {"alpha": alpha + 0.2 * alpha.std()}
    assert np.max(np.abs(scores_of(posterior, shifted))) > limit


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("posterior", POSTERIORS, ids=lambda each: each.name)
def test_moments_are_the_published_ones(posterior, way):
    found = published_table.outcome_of(posterior, way)
    limit = threshold(2 * sum(len(moments_of(each)) for each in POSTERIORS) * len(WAYS))
    if posterior.hard:
        assert found.warnings or found.worst < limit
        return
    assert found.worst < limit, found
    assert found.r_hat < 1.05, found


def test_the_document_holds_every_row():
    document = published_table.DOCUMENT.read_text()
    assert all(f"| {posterior.name} |" in document for posterior in POSTERIORS)
