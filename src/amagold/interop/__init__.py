"""Front ends for models and drivers of other libraries, which are imported when they are used.

`amagold.interop.numpyro` has a kernel for `numpyro.infer.MCMC`; `amagold.interop.blackjax` takes
what BlackJAX tuned. `amagold.from_numpyro` makes a target of a NumPyro model.
"""

from amagold.interop._from_numpyro import from_numpyro

__all__ = ["from_numpyro"]
