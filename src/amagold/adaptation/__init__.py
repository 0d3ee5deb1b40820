"""What warm-up sets before the first kept draw: step size, mass matrix and number of steps."""

from amagold.adaptation._warmup import SgdBurnIn, Warmup

__all__ = ["SgdBurnIn", "Warmup"]
