"""Make poisson_quantiles.csv: exact (Garwood) 95 % limits of a Poisson mean given a count.

Run by hand when the range changes: `python warehouse/reference/make_poisson_quantiles.py`. Needs scipy, which the
product does not.
"""

from __future__ import annotations

import csv
from pathlib import Path

from scipy.stats import chi2

LARGEST = 2000
LEVEL = 0.95


def limits(n: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the lower and upper limit for a count of `n`."""
    tail = (1 - level) / 2
    lower = float(chi2.ppf(tail, 2 * n)) / 2 if n else 0.0
    return lower, float(chi2.ppf(1 - tail, 2 * n + 2)) / 2


def main() -> None:
    """Write the file beside this script."""
    with Path(__file__).with_name("poisson_quantiles.csv").open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(("n", "lower95", "upper95"))
        for n in range(LARGEST + 1):
            lower, upper = limits(n)
            writer.writerow((n, f"{lower:.6f}", f"{upper:.6f}"))


if __name__ == "__main__":
    main()
