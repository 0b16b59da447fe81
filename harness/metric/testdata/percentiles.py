"""Percentiles of type 7 by numpy, for metric_test.go: python3 percentiles.py > percentiles.json"""

import json

import numpy

random = numpy.random.default_rng(20260920)
cases = []
for n in [1, 2, 3, 5, 8, 24, 96, 192]:
    values = numpy.round(random.lognormal(0, 1, n), 6)
    for p in [0, 1, 5, 25, 50, 75, 90, 95, 99, 99.9, 100]:
        cases.append({"values": values.tolist(), "p": p, "want": float(numpy.percentile(values, p, method="linear"))})
print(json.dumps({"numpy": numpy.__version__, "cases": cases}))
