"""The tables of the applied posteriors: real ones, and simulated ones with the sizes and scales of
those that they stand for.
"""

import csv
import gzip
from functools import cache
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent.parent / "tables"
SIMULATED = "simulated with the original's sizes and scales"


@cache
def read(name: str) -> dict[str, np.ndarray]:
    with gzip.open(FOLDER / f"{name}.csv.gz", "rt") as file:
        names, *rows = csv.reader(file)
    return dict(zip(names, np.array(rows, np.float64).T, strict=True))


@cache
def kids() -> dict[str, np.ndarray]:
    """434 children: test score 20 to 144, mother's IQ 71 to 139, whether she finished high school
    (four in five).
    """
    generator = np.random.default_rng(101)
    school = (generator.random(434) < 0.786).astype(float)
    iq = np.clip(92.0 + 10.3 * school + 14.4 * generator.normal(size=434), 71.0, 139.0)
    score = np.clip(
        np.round(
            -11.5 + 51.3 * school + (1.1 - 0.5 * school) * iq + 18.0 * generator.normal(size=434)
        ),
        20,
        144,
    )
    return {"score": score, "iq": iq, "school": school}


@cache
def earnings() -> dict[str, np.ndarray]:
    """1,192 people: height in inches, 57 to 82, and earnings in dollars, most below 30,000 and some
    far above.
    """
    generator = np.random.default_rng(102)
    height = np.clip(np.round(66.6 + 3.8 * generator.normal(size=1_192)), 57, 82)
    typical = np.exp(9.4 + 0.055 * (height - 66.6) + 0.85 * generator.normal(size=1_192))
    return {"height": height, "earnings": np.round(np.minimum(typical, 200_000.0), -2)}


@cache
def mesquite() -> dict[str, np.ndarray]:
    """46 bushes: two diameters of the canopy, its height, the total height, the density and the
    group; the weight in grams.
    """
    generator = np.random.default_rng(103)
    wide = np.exp(0.6 + 0.4 * generator.normal(size=46))
    table = {
        "diameter1": wide,
        "diameter2": wide * np.exp(-0.2 + 0.2 * generator.normal(size=46)),
        "canopy_height": np.exp(0.05 + 0.35 * generator.normal(size=46)),
        "density": np.maximum(1, generator.poisson(1.7, 46)).astype(float),
        "group": (np.arange(46) >= 26).astype(float),
    }
    table["total_height"] = table["canopy_height"] * np.exp(
        0.25 + 0.15 * np.abs(generator.normal(size=46))
    )
    size = (
        0.4 * np.log(wide) + 1.1 * np.log(table["diameter2"]) + 0.4 * np.log(table["canopy_height"])
    )
    table["weight"] = np.exp(
        4.8
        + size
        + 0.4 * np.log(table["total_height"])
        + 0.58 * table["group"]
        + 0.33 * generator.normal(size=46)
    )
    return table


@cache
def votes() -> dict[str, np.ndarray]:
    """1,179 voters: income in five classes, and the vote."""
    generator = np.random.default_rng(104)
    income = generator.choice(np.arange(1.0, 6.0), 1_179, p=[0.14, 0.17, 0.31, 0.31, 0.07])
    return {
        "income": income,
        "vote": (generator.random(1_179) < 1 / (1 + np.exp(1.4 - 0.33 * income))).astype(float),
    }


@cache
def peregrines() -> dict[str, np.ndarray]:
    """40 years of counts that first fall and then rise."""
    generator = np.random.default_rng(105)
    year = (np.arange(1.0, 41.0) - 20.5) / 20.0
    return {
        "year": year,
        "count": generator.poisson(np.exp(4.3 + 1.3 * year + 0.1 * year**2 - 0.5 * year**3)).astype(
            float
        ),
    }


@cache
def five_predictors() -> dict[str, np.ndarray]:
    """100 examples of five correlated predictors, all with the slope one."""
    generator = np.random.default_rng(106)
    X = generator.normal(size=(100, 5)) + 1.5 * generator.normal(size=(100, 1))
    return {"X": X, "y": X.sum(axis=1) + generator.normal(size=100)}


@cache
def dogs() -> dict[str, np.ndarray]:
    """30 dogs in 25 trials: a shock, or avoided; both teach, avoidance more."""
    generator = np.random.default_rng(107)
    rows = []
    for _ in range(30):
        avoided, shocked = 0, 0
        for _ in range(25):
            is_shocked = generator.random() < 1 / (
                1 + np.exp(-(1.8 - 0.35 * avoided - 0.2 * shocked))
            )
            rows.append((avoided, shocked, is_shocked))
            avoided, shocked = avoided + (not is_shocked), shocked + is_shocked
    return dict(zip(("avoided", "shocked", "shock"), np.array(rows, np.float64).T, strict=True))


@cache
def curve() -> dict[str, np.ndarray]:
    """11 places and the values of a smooth curve there, with noise."""
    generator = np.random.default_rng(108)
    x = np.linspace(-10.0, 10.0, 11)
    return {"x": x, "y": 2.0 * np.sin(x / 4.0) + 0.6 * generator.normal(size=11)}
