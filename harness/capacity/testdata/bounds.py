"""Exact one-sided binomial bounds by SciPy, for capacity_test.go:
python3 bounds.py > bounds.json"""

import json

import scipy
from scipy.stats import beta

cases = []
for within, n in ((0, 10), (10, 10), (1, 1), (95, 100), (190, 200), (199, 200), (200, 200), (960, 1000), (4700, 5000), (19100, 20000)):
    for confidence in (0.9, 0.95, 0.99):
        cases.append({
            "within": within, "n": n, "confidence": confidence,
            "lower": beta.ppf(1 - confidence, within, n - within + 1) if within else 0.0,
            "upper": beta.ppf(confidence, within + 1, n - within) if within < n else 1.0,
        })
print(json.dumps({"scipy": scipy.__version__, "cases": cases}, default=float))
