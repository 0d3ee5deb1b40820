"""Unbiased estimators of the gradient of the energy U = -log pi.

An estimator draws its randomness for a whole trajectory at once, apart from the position where it
is used.

The names are those of `__init__.pyi`; each loads when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
