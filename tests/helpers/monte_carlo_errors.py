"""How far two sets of draws are apart."""

import arviz_stats
import numpy as np
from false_alarms import threshold


def apart(ours, theirs):
    """Means and spreads in their joint Monte Carlo errors, as a share of the threshold."""
    found = []
    for one, other in zip(*(np.moveaxis(each, -1, 0) for each in (ours, theirs)), strict=True):
        center = other.mean()
        for values in ((one, other), ((one - center) ** 2, (other - center) ** 2)):
            errors = [
                each.std() / np.sqrt(float(arviz_stats.ess(np.asarray(each), method="mean")))
                for each in values
            ]
            found.append((values[0].mean() - values[1].mean()) / np.hypot(*errors))
    return np.abs(found).max() / threshold(len(found))
