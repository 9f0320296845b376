"""Confidence intervals of medians. Night drills compare a bound with the end of an interval instead
of a single measurement."""
import math

MOST_WRONG = 0.05                       # part of the intervals that may miss the true median


def of_median(values):
    """Returns (low, high), two of the values. The true median lies between them with 95 %
    confidence, by order statistics. Assumes that the values are independent, and nothing about
    their distribution. Needs at least six values."""
    ordered = sorted(values)
    count = len(ordered)
    outside, rank = 2 / 2 ** count, 0   # probability that the median is outside of the ends
    if outside > MOST_WRONG:
        raise ValueError("%d values tell too little of a median" % count)
    while (more := outside + 2 * math.comb(count, rank + 1) / 2 ** count) <= MOST_WRONG:
        outside, rank = more, rank + 1
    return ordered[rank], ordered[-1 - rank]
