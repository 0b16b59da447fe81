"""What SciPy says of gamma gaps of mean 1, for arrival_test.go:
python3 gamma.py > gamma.json"""

import json

import scipy
from scipy.stats import gamma

cases = []
for burstiness in (0.05, 0.25, 0.5, 1.0, 2.5, 20.0):
    d = gamma(burstiness, scale=1 / burstiness)
    cases.append({
        "burstiness": burstiness, "mean": d.mean(), "sd": d.std(),
        "percentiles": [d.ppf(q / 100) for q in range(1, 100)],
    })
print(json.dumps({"scipy": scipy.__version__, "cases": cases}, default=float))
