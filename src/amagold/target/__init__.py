"""What is sampled from. One definition feeds the gradient and the test, so that they cannot
disagree.
"""

from amagold.target import transforms
from amagold.target._density import Density
from amagold.target._linear_bounds import LinearBounds
from amagold.target._linear_likelihood import LinearLikelihood
from amagold.target._posterior import Posterior, with_data

Target = Posterior | Density

__all__ = [
    "Density",
    "LinearBounds",
    "LinearLikelihood",
    "Posterior",
    "Target",
    "transforms",
    "with_data",
]
