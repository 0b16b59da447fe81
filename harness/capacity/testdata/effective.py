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
for n, rate, limit, share in (
    (1, 0.5, 5, 0.95), (2, 0.5, 0.5, 0.95), (63, 0.7, 3, 0.95), (64, 0.7, 3, 0.9), (65, 0.7, 3, 0.95), (128, 0.7, 5, 0.5), (200, 0.8, 15, 0.99),
    (257, 0.9, 10, 0.95), (400, 0.95, 20, 0.9), (300, 1.2, 30, 0.95), (150, 0.3, 100, 0.95), (500, 0.8, 12, 0.99), (333, 0.85, 6, 0.8),
):
    at = np.cumsum(rng.exponential(1 / rate, n))
    free, values = 0.0, []
    for a in at:
        free = max(a, free) + rng.exponential(1)
        values.append(round(free - a, 6))
    values = np.array(values)
    within = values <= limit
    alone = inflation(within)
    # Rounding keeps 1 − 10·(1 − 0.99), say, from being a hair above 0.9.
    quantiles = [round(max(0.5, 1 - times * (1 - share)), 9) for times in (1, 2, 4, 10)]
    cuts = [np.sort(values)[int(np.ceil(round(q * n, 6))) - 1] for q in quantiles]
    cases.append({
        "share": share, "within": "".join("01"[int(w)] for w in within), "values": values.tolist(),
        "alone": n / alone, "withvalues": n / max([alone] + [inflation(values <= c) for c in cuts]),
    })
print(json.dumps({"numpy": np.__version__, "cases": cases}))
