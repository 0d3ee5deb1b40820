# The public names of this room: `__init__.py` reads them, and so do type checkers.

from ._double_well import double_well as double_well
from ._gamma import gamma as gamma
from ._linear import linear as linear
from ._logistic import logistic as logistic
from ._mixed import mixed as mixed
from ._mixed_groups import Group as Group
from ._negative_binomial import negative_binomial as negative_binomial
from ._network import network as network
from ._ordinal import ordinal as ordinal
from ._poisson import poisson as poisson
from ._probit import probit as probit
from ._robust import robust as robust
from ._softmax import softmax as softmax
