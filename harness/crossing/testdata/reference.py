"""What numpy and SciPy say of paired differences, for reference_test.go:
python3 reference.py > reference.json

Intervals are found here by other means than there: the sign-flip interval by
scanning the p-value of shifted differences, the band by numpy's own random
numbers, so that those are compared within what resampling allows."""

import itertools
import json

import numpy
import scipy
from scipy.stats import bootstrap, permutation_test

random = numpy.random.default_rng(20261201)


def p_value(values):
    """Two-sided, over all sign patterns, by enumeration."""
    observed = abs(sum(values))
    signs = itertools.product([1, -1], repeat=len(values))
    sums = [abs(sum(s * v for s, v in zip(sign, values))) for sign in signs]
    return sum(s >= observed - 1e-12 * max(1, observed) for s in sums) / len(sums)


def inverted(values, level):
    """The ends of the means that are not rejected, by bisection."""
    def kept(mean):
        return p_value([v - mean for v in values]) > 1 - level + 1e-12
    middle = float(numpy.mean(values))
    reach = 10 * (max(values) - min(values) + 1)
    ends = []
    for sign in (-1, 1):
        if kept(middle + sign * reach):
            ends.append(None)
            continue
        inside, outside = middle, middle + sign * reach
        for _ in range(80):
            half = (inside + outside) / 2
            if kept(half):
                inside = half
            else:
                outside = half
        ends.append(inside)
    return ends


cases = []
for k in (5, 6, 7, 8):
    values = numpy.round(random.normal(-2, 3, k), 3)
    percentile = bootstrap((values,), numpy.mean, method="percentile", n_resamples=200_000, rng=random).confidence_interval
    cases.append({
        "values": values.tolist(), "inverted": inverted(values.tolist(), 0.95),
        "bootstrap": [float(percentile.low), float(percentile.high)],
        "p": float(permutation_test((values,), lambda x, axis: numpy.mean(x, axis=axis), permutation_type="samples", n_resamples=numpy.inf, vectorized=True).pvalue),
        "greater": float(permutation_test((values + 2.5,), lambda x, axis: numpy.mean(x, axis=axis), permutation_type="samples", n_resamples=numpy.inf, vectorized=True, alternative="greater").pvalue),
    })

# Eight pairs of a sequence of thirty, as differences of cumulative times.
k, n, resamples = 8, 30, 100_000
steps = numpy.round(random.normal(-0.4, 0.05, (k, 1)) + random.normal(0, 0.1, (k, n)), 6)
start = numpy.round(random.normal(8, 0.5, (k, 1)), 6)
curves = numpy.hstack([start, start + numpy.cumsum(steps, axis=1)])
means = curves[random.integers(0, k, (resamples, k))].mean(axis=1)
center, spread = curves.mean(axis=0), means.std(axis=0)
width = numpy.quantile(numpy.abs((means - center) / spread).max(axis=1), 0.95)
curve = {
    "differences": curves.round(9).tolist(), "mean": center.tolist(),
    "low": numpy.quantile(means, 0.025, axis=0).tolist(), "high": numpy.quantile(means, 0.975, axis=0).tolist(),
    "band_low": (center - width * spread).tolist(), "band_high": (center + width * spread).tolist(),
    "slope": float(numpy.polyfit(range(1, k + 1), curves[:, -1], 1)[0]),
}
print(json.dumps({"numpy": numpy.__version__, "scipy": scipy.__version__, "cases": cases, "curve": curve}))
