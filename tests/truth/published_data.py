"""Small tables of posteriordb's posteriors; those of wells and radon are in tests/tables."""

import numpy as np
import tables

# stan-dev/example-models (BSD-3), ARM/Ch.4: bushes of mesquite
_MESQUITE = {
    "canopy": """1 1.33 .6 1.2 1.05 1 .9 1.3 .6 .8 .6 .95 1.2 .7 1.2 1.1 .64 1.2 1.2 1.3 1 .9 1 .5
        .9 .6 1.4 2.5 1.4 1.3 1.1 1.5 .8 1.1 1.3 .85 1.5 1.2 1.15 1.5 .7 1.9 1.5 1.5 1.5 .62""",
    "total": """1.3 1.35 2.16 1.8 1.55 1.2 1 1.7 .8 1.2 .9 1.35 1.4 1 1.7 1.5 .65 1.5 1.7 1.7 1.5
        1.5 1.2 .7 1.2 .8 1.7 3 1.7 1.6 1.5 1.9 1.1 1.6 2 1.25 2 1.3 1.45 2.2 .7 1.9 1.8 2 2.2
        .92""",
    "weight": """401.3 513.7 1179.2 308 855.2 268.7 155.5 1253.2 328 614.6 60.2 269.6 448.4 120.4
        378.7 266.4 138.9 1020.8 635.7 621.8 579.8 326.8 66.7 68 153.1 256.4 723 4052 345 330.9
        163.5 1160 386.6 693.5 674.4 217.5 771.3 341.7 125.7 462.5 64.5 850.6 226 1745.1 908
        213.5""",
    "density": """1 1 1 1 1 1 1 2 1 1 1 1 1 1 1 1 1 1 1 1 1 2 1 1 1 1 5 9 1 1 1 3 1 3 7 1 2 2 2 3
        1 1 2 2 1 1""",
    "diameter1": """1.8 1.7 2.8 1.3 3.3 1.4 1.5 3.9 1.8 2.1 .8 1.3 1.2 1.5 2.8 1.4 1.5 2.4 1.9 2.3
        2.1 2.4 1 1.3 1.1 1.3 2.5 5.2 2 1.6 1.4 3.2 1.9 2.4 2.5 2.1 2.4 2.4 1.9 2.7 1.3 2.9 2.1
        4.1 2.8 1.27""",
    "diameter2": """1.15 1.35 2.55 .85 1.9 1.4 .5 2.3 1.35 1.6 .63 .95 .9 .7 1.7 .85 .6 2.4 1.55
        1.6 1.7 1.3 .4 .6 .7 1.2 2.3 4 1.6 1.6 1 1.9 1.8 2.4 1.8 1.5 2.2 1.7 1.2 2.5 1.1 2.7 1 3.8
        2.5 1""",
}

# the same, ARM/Ch.24: thirty dogs, 25 trials each; 1 is a shock
_DOGS = """
    1101010000000000000000000 1111111011111100000000000 1111100100110010100000000
    1001100001010100000000000 1111111100000000000000000 1111110000110100000000000
    1111101111110000000000000 1111111001100000000000000 1111101010010111000001001
    1111011001010000000000000 1111111111000000100000000 1111100000110000000000000
    1110010110000000000000000 1111010010000000000000000 1110100100000000000000000
    1111111000000000000000000 1010111010000100000000000 1111010100000000000000000
    1011110111000000000000000 1111001010010100000000000 1110000010000000000000000
    1101010000000000110000000 1111111000000000000000000 1111111100010111001000000
    1111110100001010000000000 1101000100100000000000000 1111010000000000000000000
    1110101000101000000000000 1111001100010101010000000 1111000000101000000000000"""

# stan-dev/stat_comp_benchmarks (BSD-3)
PLACES = np.arange(-10.0, 11.0, 2.0)
_CURVE = "4.75906 1.59423 2.99548 5.27501 1.66472 2.24347 2.8914 4.08681 4.60588 .802364 3.92136"
CURVE = np.array(_CURVE.split(), float)
COUNTS = np.array([40, 37, 29, 12, 4, 3, 9, 19, 77, 82, 33], float)

# posteriordb, GLM_Poisson_Data: pairs of falcons in forty years
_PAIRS = """29 36 19 28 36 29 20 19 35 32 34 34 33 47 48 46 46 49 60 64 87 85 85 95 115 127 142 168
    181 194 200 210 208 235 244 272 239 263 239 245"""
FALCONS = np.array(_PAIRS.split(), float)
YEARS = 0.0855398922768302 * (np.arange(40) - 19.5)


def bushes() -> dict[str, np.ndarray]:
    """Logarithms of volume, area, shape, height, density and weight, and the group."""
    found = {name: np.array(text.split(), float) for name, text in _MESQUITE.items()}
    area = found["diameter1"] * found["diameter2"]
    return {
        "volume": np.log(area * found["canopy"]),
        "area": np.log(area),
        "shape": np.log(found["diameter1"] / found["diameter2"]),
        "height": np.log(found["total"]),
        "density": np.log(found["density"]),
        "group": (np.arange(46) >= 26).astype(float),
        "weight": np.log(found["weight"]),
    }


def dogs() -> dict[str, np.ndarray]:
    """Of every trial, how often the dog avoided and was shocked before, and whether it was."""
    shocked = np.array([list(map(float, row)) for row in _DOGS.split()])
    before = np.cumsum(shocked, axis=1) - shocked
    return {
        "avoided": (np.arange(25.0) - before).ravel(),
        "shocked": before.ravel(),
        "y": shocked.ravel(),
    }


def wells() -> dict[str, np.ndarray]:
    return tables.read("wells")


def radon() -> dict[str, np.ndarray]:
    return tables.read("radon")


def mixture() -> np.ndarray:
    """As low_dim_gauss_mix, whose own thousand numbers are not kept here: simulated alike."""
    generator = np.random.default_rng(7)
    is_lower = generator.random(1_000) < 0.375
    return np.where(
        is_lower, generator.normal(-2.75, 1.0, 1_000), generator.normal(2.75, 1.0, 1_000)
    )
