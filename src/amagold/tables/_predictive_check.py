"""Whether new outcomes of a model look like the observed ones."""

from typing import Any

from amagold.sampling._next_steps import PredictiveCheck


def predictive_check(*arguments: Any) -> PredictiveCheck:
    raise NotImplementedError
