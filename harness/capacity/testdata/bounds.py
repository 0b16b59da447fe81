"""Exact one-sided binomial bounds by SciPy, for judge_test.go; the numbers of
attempts are not whole where they are effective ones:
python3 bounds.py > bounds.json"""

import json

import scipy
from scipy.stats import beta

whole = [(0, 10), (10, 10), (1, 1), (95, 100), (190, 200), (199, 200), (200, 200), (960, 1000), (4700, 5000), (19100, 20000)]
effective = [(0, 3.7), (3.7, 3.7), (0.4, 1), (0.02, 1.5), (9.31, 9.8), (47.25, 50.5), (188.6, 193.125), (191.99, 193.125), (613.2, 640.9), (1234.5, 1240.01)]
cases = []
for within, n in whole + effective:
    for confidence in (0.9, 0.95, 0.99):
        cases.append({
            "within": within, "n": n, "confidence": confidence,
            "lower": beta.ppf(1 - confidence, within, n - within + 1) if within else 0.0,
            "upper": beta.ppf(confidence, within + 1, n - within) if within < n else 1.0,
        })
print(json.dumps({"scipy": scipy.__version__, "cases": cases}, default=float))
