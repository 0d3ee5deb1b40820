"""How far two sets of draws are apart."""

import arviz_stats
import numpy as np
from false_alarms import threshold

TAILS = (0.1, 0.9)


def apart(ours, theirs):
    """Means, spreads and tails in joint Monte Carlo errors, as a share of the threshold."""
    found = []
    for one, other in zip(*(np.moveaxis(each, -1, 0) for each in (ours, theirs)), strict=True):
        center = other.mean()
        tails = [(one < end, other < end) for end in np.quantile(other, TAILS)]
        for pair in ((one, other), ((one - center) ** 2, (other - center) ** 2), *tails):
            values = [each.astype(np.float64) for each in pair]
            errors = [
                each.std() / np.sqrt(float(arviz_stats.ess(np.asarray(each), method="mean")))
                for each in values
            ]
            found.append((values[0].mean() - values[1].mean()) / np.hypot(*errors))
    return np.abs(found).max() / threshold(len(found))
