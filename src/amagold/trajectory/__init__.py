"""T proposal steps and the work they accumulate.

A proposal moves a `Phase` (position and momentum) by one step and says how much log probability the
step gained or lost:
    work = log [ P(y^, x^; zeta) phi(y) ] - log [ P(x, y; zeta) phi(x) ],
where P is the proposal's density, zeta its minibatch, phi the density of the momentum and ^ the
involution that turns time around. Section 4 of the paper then needs only log pi(y) - log pi(x) +
(sum of work) for an exact test.

The names are those of `__init__.pyi`; each loads when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
