"""Ready-made posteriors."""

from amagold.models.double_well import double_well
from amagold.models.linear import linear
from amagold.models.logistic import logistic
from amagold.models.network import network
from amagold.models.poisson import poisson
from amagold.models.probit import probit
from amagold.models.robust import robust
from amagold.models.softmax import softmax

__all__ = ["double_well", "linear", "logistic", "network", "poisson", "probit", "robust", "softmax"]
