"""What arrays hold and along which axes, in words.

Within one call, axes of one name are of one length, and positions are of one form, leaf by leaf.
Only the tests check it; to everybody else these are arrays.
"""

import jax
import numpy as np
from jax import Array

from amagold.core.array_types import Bool, Float, Float64, Int, PRNGKeyArray, PyTree, Real, Shaped

Scalar = Float[Array, ""]
Flag = Bool[Array, ""]
Whole = Int[Array, ""]
Number = Real[Array, ""] | float | int  # a setting
RandomKey = PRNGKeyArray  # of the new kind or the old

# theta, and all that has its form: momenta, gradients, noise
Position = PyTree[Float[Array | np.ndarray, "?*shape"], "position"]
Leaf = Float[Array | np.ndarray, "*leaf"]  # one array of it
# a position of which only shapes and types are read; NumPy's numbers are a chain's among others
Form = PyTree[Float[Array | np.ndarray | np.floating | jax.ShapeDtypeStruct, "?*shape"], "position"]

# one number for every parameter, over the flattened position
Vector = Float[Array, " parameters"]
Matrix = Float[Array, "parameters parameters"]
# the same on the host, where searches for modes and plans compute
HostVector = Float64[np.ndarray, " parameters"]
HostMatrix = Float64[np.ndarray, "parameters parameters"]

Example = PyTree[Shaped[Array | np.ndarray, "..."]]
Rows = PyTree[Shaped[Array | np.ndarray, "rows ..."]]  # some of the examples
Batches = PyTree[Shaped[Array | np.ndarray, "steps rows ..."]]  # some for each step
PerRow = Float[Array, " rows"]
PerExample = Float[Array, " examples"]  # all of them
Predictor = Float[Array, "*predictor"]  # z_i of one example: a number, or several
PredictorPerRow = Float[Array, " rows *predictor"]
