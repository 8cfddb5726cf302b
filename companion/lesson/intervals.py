"""What shares of independent trials say as evidence: ``ours`` and the 95 % interval that `Claims.evidence` takes."""

from collections.abc import Iterable
from math import exp, log, sqrt

Z = 1.96


def wilson(share: float, trials: int) -> tuple[float, float]:
    """Return Wilson's interval of a share of so many trials."""
    middle, spread = share + Z**2 / (2 * trials), Z * sqrt((share * (1 - share) + Z**2 / (4 * trials)) / trials)
    return (middle - spread) / (1 + Z**2 / trials), (middle + spread) / (1 + Z**2 / trials)


def points(share: float, trials: int) -> dict[str, list[float]]:
    """Return a share of so many trials, in points, with Wilson's interval."""
    return {"ours": [100 * share], "interval": [100 * end for end in wilson(share, trials)]}


def points_ahead(ahead: float, behind: float, trials: int) -> dict[str, list[float]]:
    """Return by how many points a share is ahead of another, each of so many trials, with Newcombe's interval."""
    (low, high), (below, above), lead = wilson(ahead, trials), wilson(behind, trials), ahead - behind
    less, more = sqrt((ahead - low) ** 2 + (above - behind) ** 2), sqrt((high - ahead) ** 2 + (behind - below) ** 2)
    return {"ours": [100 * lead], "interval": [100 * (lead - less), 100 * (lead + more)]}


def least_ahead(ahead: Iterable[float], behind: Iterable[float], trials: int) -> dict[str, list[float]]:
    """Return `points_ahead` of the pair where the lead is least."""
    leads = (points_ahead(float(one), float(other), trials) for one, other in zip(ahead, behind, strict=True))
    return min(leads, key=lambda lead: lead["ours"])


def ratio(share: float, other: float, trials: int) -> dict[str, list[float]]:
    """Return the ratio of two shares above 0, each of so many trials, with the interval of its logarithm."""
    within = Z * sqrt((1 / share - 1 + 1 / other - 1) / trials)
    return {"ours": [share / other], "interval": [share / other * exp(-within), share / other * exp(within)]}


def share_of_lead(share: float, other: float, chance: float, trials: int) -> dict[str, list[float]]:
    """Return how much of the lead that ``other`` has over ``chance`` a ``share`` has, from the `ratio` of the two.

    ``trials``: of each of the two shares.
    """
    return {
        name: [(each * other - chance) / (other - chance) for each in of]
        for name, of in ratio(share, other, trials).items()
    }


def hoeffding(mean: float, width: float, trials: int) -> dict[str, list[float]]:
    """Return a mean of so many trials that lie between two bounds ``width`` apart, with Hoeffding's interval."""
    within = width * sqrt(log(2 / 0.05) / (2 * trials))
    return {"ours": [mean], "interval": [mean - within, mean + within]}
