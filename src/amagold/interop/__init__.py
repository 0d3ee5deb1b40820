"""Front ends for models and drivers of other libraries, which are imported when they are used.

`amagold.interop.numpyro` has a kernel for `numpyro.infer.MCMC`; `amagold.interop.blackjax` takes
what BlackJAX tuned. `amagold.from_numpyro` makes a target of a NumPyro model, `amagold.from_module`
of a network of Flax NNX (`amagold.interop.flax`) or Equinox (`amagold.interop.equinox`).
"""

import importlib
from typing import Any

from amagold.interop._from_module import from_module
from amagold.interop._from_numpyro import from_numpyro
from amagold.interop._from_optimizer import from_optimizer
from amagold.interop._last_layer import LastLayer, last_layer
from amagold.interop._network_predictions import Prediction, predict

MODULES = ("blackjax", "equinox", "flax", "numpyro")

__all__ = [  # type: ignore[reportUnsupportedDunderAll]
    "LastLayer",
    "Prediction",
    "blackjax",
    "equinox",
    "flax",
    "from_module",
    "from_numpyro",
    "from_optimizer",
    "last_layer",
    "numpyro",
    "predict",
]


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
