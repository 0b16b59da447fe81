"""The capacity of the parameter set "t4-vllm", by a simulation that shares no
code with the emulated engine, for found_test.go: python3 batching.py > batching.json

The model is that of the set's declaration. The front end takes 4.13 ms for each
request, longer by 2.76 % for each sequence that runs as a step begins, one after
the other. A step serves every sequence that runs and takes in whoever waits: it
takes 14.29 ms, 0.251 ms for each that decodes, and 10.45 ms plus 0.074 ms a
token if it holds prompts, times a normal factor of mean 1 and deviation 3 %. A
prompt's step gives the first token, every further step one more. At these rates
no bound on sequences, on a step's tokens or on the cache is reached, which is
checked. Prompts have 38 tokens; answers have one of eight lengths, drawn anew
for each. The capacity is the rate at which exactly 95 % are within the limit:
the root, on a common stream of random numbers, of a long run's share."""

import heapq
import json
import sys

import numpy as np

LENGTHS = [17, 72, 128, 93, 78, 98, 80, 100]
PROMPT, MOST_SEQUENCES, MOST_STEP_TOKENS = 38, 256, 2048


def simulate(rate, requests, seed):
    """TTFT and TPOT of each request, in seconds, after a warm-up."""
    rng = np.random.default_rng(seed)
    at = np.cumsum(rng.exponential(1.0, requests)) / rate
    tokens = rng.choice(LENGTHS, requests)
    factors = iter(())
    first, last = np.zeros(requests), np.zeros(requests)
    now, step, free = 0.0, 0, 0.0  # free: when the front end is done
    came, running, ends = 0, 0, []  # ends: (the step of the last token, request)
    while came < requests or ends:
        taken = []
        while came < requests:
            passed = max(at[came], free) + 0.00413 * (1 + 0.0276 * running)
            if passed > now:
                break
            free = passed
            taken.append(came)
            came += 1
        if not taken and not ends:
            now = passed
            continue
        assert running + len(taken) <= MOST_SEQUENCES and running + PROMPT * len(taken) <= MOST_STEP_TOKENS
        takes = 0.01429 + 0.000251 * running
        if taken:
            takes += 0.01045 + 0.000074 * PROMPT * len(taken)
        factor = next(factors, None)
        if factor is None:
            factors = iter((1 + 0.03 * rng.standard_normal(100_000)).tolist())
            factor = next(factors)
        now += takes * max(factor, 0.2)
        for i in taken:
            first[i] = now
            heapq.heappush(ends, (step + int(tokens[i]) - 1, i))
        running += len(taken)
        while ends and ends[0][0] == step:
            last[heapq.heappop(ends)[1]] = now
            running -= 1
        step += 1
    measured = slice(requests // 50, None)
    return (first - at)[measured], ((last - first) / (tokens - 1))[measured]


def capacity(of, limit, low, high, requests, seed):
    for _ in range(9):
        middle = (low + high) / 2
        values = simulate(middle, requests, seed)[of]
        if (values <= limit).mean() >= 0.95:
            low = middle
        else:
            high = middle
    return (low + high) / 2


if __name__ == "__main__":
    if len(sys.argv) > 1:
        for rate in map(float, sys.argv[1:]):
            ttft, tpot = simulate(rate, 100_000, 1)
            print(rate, np.percentile(ttft, [50, 95, 99]), np.percentile(tpot, [50, 95, 99]))
        sys.exit()
    cases = []
    for name, of, limit, low, high in (("ttft_p95", 0, 0.1, 15, 21), ("tpot_p95", 1, 0.04, 15, 21)):
        each = [capacity(of, limit, low, high, 300_000, seed) for seed in (1, 2, 3, 4)]
        cases.append({"objective": name, "limit_s": limit, "rate": float(np.mean(each)), "each": each})
    print(json.dumps({"numpy": np.__version__, "cases": cases}))
