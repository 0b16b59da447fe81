"""Effective numbers of attempts by NumPy, straight from the definition, for
effective_test.go: python3 effective.py > effective.json"""

import json

import numpy as np


def inflation(x):
    """Geyer's initial monotone sequence (1992), as a ratio, 1 at least."""
    x = x.astype(float) - x.mean()
    covariances = np.correlate(x, x, "full")[len(x) - 1:]
    if covariances[0] <= 0:
        return 1.0
    pairs = covariances[0:len(x) // 2 * 2:2] + covariances[1:len(x) // 2 * 2:2]
    stops = np.flatnonzero(pairs <= 1e-9)
    pairs = np.minimum.accumulate(pairs[: stops[0] if len(stops) else len(pairs)])
    return max(1.0, (2 * pairs.sum() - covariances[0]) / covariances[0])


rng = np.random.default_rng(20261203)
cases = []
for n, rate, limit in ((1, 0.5, 5), (2, 0.5, 0.5), (63, 0.7, 3), (64, 0.7, 3), (65, 0.7, 3), (128, 0.7, 5), (200, 0.8, 15), (257, 0.9, 10), (400, 0.95, 20), (300, 1.2, 30), (150, 0.3, 100)):
    at = np.cumsum(rng.exponential(1 / rate, n))
    free, values = 0.0, []
    for a in at:
        free = max(a, free) + rng.exponential(1)
        values.append(round(free - a, 6))
    values = np.array(values)
    within = values <= limit
    alone = inflation(within)
    cuts = [np.sort(values)[int(np.ceil(c * n)) - 1] for c in (0.5, 0.8, 0.9, 0.95)]
    cases.append({
        "within": "".join("01"[int(w)] for w in within), "values": values.tolist(),
        "alone": n / alone, "withvalues": n / max([alone] + [inflation(values <= c) for c in cuts]),
    })
print(json.dumps({"numpy": np.__version__, "cases": cases}))
