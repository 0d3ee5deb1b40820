"""Batch plans: which examples each of the T steps of a trajectory sees, and why that keeps
exactness.

A trajectory is exact when the law of its T batches is the same read forwards and backwards, and
does not depend on the chain's state. Every plan here says so in `is_reversal_invariant`.
"""

from amagold.batches._batch_plans import Epoch, External, Iid, Palindrome, Plan, plan_by_name

__all__ = ["Epoch", "External", "Iid", "Palindrome", "Plan", "plan_by_name"]
