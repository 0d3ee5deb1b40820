"""Data that are split over devices: the same draws as from one place, up to what sums in another
order round to.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_target import posterior_of_normal_means
from jax.sharding import Mesh
