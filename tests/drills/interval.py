"""Which medians figures are compatible with: by night a bound is compared with the end of a
confidence interval, and not with one measurement."""
import math

MOST_WRONG = 0.05                       # of the intervals do not have the true median


def of_median(values):
    """(low, high): two of the values, between which the median of whatever they were drawn from
    lies with 95 %, by order statistics. It is assumed that they are independent, and nothing of
    how they are distributed. Six are the fewest."""
    ordered = sorted(values)
    count = len(ordered)
    outside, rank = 2 / 2 ** count, 0   # the part of all draws with the median beyond the ends
    if outside > MOST_WRONG:
        raise ValueError("%d values tell too little of a median" % count)
    while (more := outside + 2 * math.comb(count, rank + 1) / 2 ** count) <= MOST_WRONG:
        outside, rank = more, rank + 1
    return ordered[rank], ordered[-1 - rank]
