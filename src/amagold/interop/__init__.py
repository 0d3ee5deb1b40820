"""Front ends for models and drivers of other libraries, which are imported when they are used.

`amagold.interop.numpyro` has a kernel for `numpyro.infer.MCMC`; `amagold.interop.blackjax` takes
what BlackJAX tuned. `amagold.from_numpyro` makes a target of a NumPyro model.
"""

import importlib
from typing import Any

from amagold.interop._from_numpyro import from_numpyro

MODULES = ("blackjax", "numpyro")

__all__ = ["blackjax", "from_numpyro", "numpyro"]  # type: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
