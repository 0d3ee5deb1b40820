"""Ready-made posteriors.

The names are those of `__init__.pyi`; each loads when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
