"""Exact two-sample permutation p-values by SciPy, and the same inverted by
trying shifts, for permutation_test.go: python3 permutation.py > permutation.json"""

import json

import numpy
import scipy
from scipy.stats import permutation_test


def p(old, new):
    of = lambda a, b, axis: numpy.mean(b, axis=axis) - numpy.mean(a, axis=axis)
    return float(permutation_test((old, new), of, n_resamples=numpy.inf, vectorized=True).pvalue)


def end(old, new, level, inside, outside):
    """Where the p-value falls to 1 - level, by bisection."""
    for _ in range(40):
        middle = (inside + outside) / 2
        if p(old, numpy.asarray(new) - middle) > 1 - level:
            inside = middle
        else:
            outside = middle
    return (inside + outside) / 2


random = numpy.random.default_rng(20260920)
samples = [([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), ([1.0] * 4, [1.0, 1.0, 2.0, 2.0]), ([0.0] * 6, [0.0, 0.0, 0.0, 0.25, 0.25, 0.5]), ([1.0, 1.5], [2.0, 3.0, 4.0])]
for n, m in [(2, 2), (3, 3), (3, 5), (4, 4), (5, 3), (6, 6), (6, 4), (5, 7), (7, 7)]:
    samples.append((numpy.round(random.normal(0, 1, n), 3).tolist(), numpy.round(random.normal(0.8, 1, m), 3).tolist()))
cases = []
for old, new in samples:
    case = {"old": old, "new": new, "want": p(old, new), "interval": None}
    if len(old) >= 4 and len(new) >= 4 and len(set(old)) > 1:
        center = numpy.mean(new) - numpy.mean(old)
        case["interval"] = [end(old, new, 0.95, center, center - 9), end(old, new, 0.95, center, center + 9)]
    cases.append(case)
print(json.dumps({"scipy": scipy.__version__, "cases": cases}))
