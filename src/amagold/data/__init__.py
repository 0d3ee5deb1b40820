"""Where examples live. The only room that indexes or slices them; everybody else asks.

A target holds one `Data`. Further places for examples, such as files or other devices, are further
classes with the same few members.

The names are those of `__init__.pyi`; each loads when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
