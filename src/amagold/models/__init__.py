"""Ready-made posteriors."""

from amagold.models._double_well import double_well
from amagold.models._gamma import gamma
from amagold.models._linear import linear
from amagold.models._logistic import logistic
from amagold.models._mixed import mixed
from amagold.models._mixed_groups import Group
from amagold.models._negative_binomial import negative_binomial
from amagold.models._network import network
from amagold.models._ordinal import ordinal
from amagold.models._poisson import poisson
from amagold.models._probit import probit
from amagold.models._robust import robust
from amagold.models._softmax import softmax

__all__ = [
    "Group",
    "double_well",
    "gamma",
    "linear",
    "logistic",
    "mixed",
    "negative_binomial",
    "network",
    "ordinal",
    "poisson",
    "probit",
    "robust",
    "softmax",
]
