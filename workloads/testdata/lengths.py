"""What SciPy says of truncated, rounded lognormal and of uniform lengths, for
lengths_test.go: python3 lengths.py > lengths.json"""

import json

import numpy
import scipy
from scipy.stats import lognorm, randint

cases = []
for median, sigma, low, high in ((512, 0.8, 16, 4096), (100, 1.5, 1, 300), (3, 0.5, 1, 20)):
    cdf = lognorm(s=sigma, scale=median).cdf
    lengths = numpy.arange(low, high + 1)
    mass = cdf(lengths + 0.5) - cdf(lengths - 0.5)
    inside = mass.sum()
    mass /= inside
    mean = (lengths * mass).sum()
    cases.append({
        "kind": "lognormal", "median": median, "sigma": sigma, "min": low, "max": high, "outside": 1 - inside, "mean": mean,
        "sd": float(numpy.sqrt(((lengths - mean) ** 2 * mass).sum())),
        "deciles": [int(lengths[numpy.searchsorted(numpy.cumsum(mass), q / 10)]) for q in range(1, 10)],
    })
d = randint(10, 201)
cases.append({"kind": "uniform", "min": 10, "max": 200, "outside": 0, "mean": d.mean(), "sd": d.std(), "deciles": [int(d.ppf(q / 10)) for q in range(1, 10)]})
print(json.dumps({"numpy": numpy.__version__, "scipy": scipy.__version__, "cases": cases}, default=float))
