"""Exact sign-flip p-values by SciPy, for signflip_test.go: python3 signflip.py > signflip.json"""

import json

import numpy
import scipy
from scipy.stats import permutation_test

random = numpy.random.default_rng(20260920)
cases = [[1.0] * 6, [0.5, -0.5, 0.5, -0.5], [2.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]]
for n in [2, 3, 5, 6, 8, 10]:
    cases.append(numpy.round(random.normal(0.4, 1, n), 3).tolist())
out = []
for effects in cases:
    result = permutation_test((effects,), lambda x, axis: numpy.sum(x, axis=axis), permutation_type="samples", n_resamples=numpy.inf, vectorized=True)
    out.append({"effects": effects, "want": float(result.pvalue)})
print(json.dumps({"scipy": scipy.__version__, "cases": out}))
