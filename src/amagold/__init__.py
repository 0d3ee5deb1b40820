"""amagold: exact posterior draws from minibatch gradients.

The public names are those of `__init__.pyi`, and of the rooms named there. They are loaded when
they are first used, so that `import amagold` and the command line's help stay light.
"""

import lazy_loader

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
