"""Which gradient, trajectory and test to sample with: what each will bring, and cost.

The names are those of `__init__.pyi`; they load when a plan is first made.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
