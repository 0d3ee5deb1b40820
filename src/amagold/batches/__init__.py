"""Batch plans: which examples each of the T steps of a trajectory sees, and why that keeps
exactness.

A trajectory is exact when the law of its T batches is the same read forwards and backwards, and
does not depend on the chain's state. Every plan here says so in `is_reversal_invariant`.
"""

from amagold.batches._batch_plans import BatchPlan, Epoch, External, Iid, Palindrome, plan_by_name

__all__ = ["BatchPlan", "Epoch", "External", "Iid", "Palindrome", "plan_by_name"]
