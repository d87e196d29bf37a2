"""Search for unsafe decisions under a free intercept: rules x models x reference accuracies x weights, at random.

The rules of the box models, and those of the sparse SVM: there a decision may be a feature as well.

Usage: python tests/safety/fuzz_intercept.py --decisions 1000000 [--seed 1000]

A decision is one row that one region fixes. It is wrong where an optimum, known to 1e-10, has the row on the other side
of its kink, for every intercept that may be meant.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.safety import sparse_attack, test_intercept, test_intercept_chunks
from tests.safety.problems import judged
from tests.safety.test_intercept import RULES

BATCH = 20  # problems
BOX = {name: partial(test_intercept.attack, rule=rule) for name, rule in RULES.items()} | {
    "range": test_intercept_chunks.attack_ranges,
    **{f"chunk {form}": partial(test_intercept_chunks.attack_walks, form=form) for form in "Cs"},
}
EXACT = partial(sparse_attack.attack, make=sparse_attack.exact_hinge)
ATTACKS = {**BOX, "sparse-svm": sparse_attack.attack, "sparse-svm-exact": EXACT}


def fuzz(decisions: int, seed: int = 1000, report=None, only=None):
    """Make at least so many decisions, with some rules alone if ``only`` names them.

    Returns
    -------
    made : Counter
        Decisions by rule.
    faults : list
        (first seed, rule, how many).
    """
    made, faults, first = Counter(), [], seed
    while sum(made.values()) < decisions:
        for name, attack in ATTACKS.items():
            if only is not None and name not in only:
                continue
            count, wrong = attack(range(first, first + BATCH))
            made[name] += count
            faults += [(first, name, wrong)] if wrong else []
        first += BATCH
        if report:
            report(f"{first - seed} problems, {sum(made.values())} decisions, {len(faults)} faults")
    return made, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1000)
    others = ", ".join(name for name in ATTACKS if name not in BOX)
    parser.add_argument("--rules", help=f"of the box models unless named, joined by commas; {others}")
    arguments = parser.parse_args()
    only = arguments.rules.split(",") if arguments.rules else list(BOX)
    made, faults = fuzz(arguments.decisions, arguments.seed, lambda text: print(text, file=sys.stderr), only)
    for rule in made:
        print(f"{rule:12s} {made[rule]:10d} decisions")
    print(f"{'all':12s} {sum(made.values()):10d} decisions, {sum(fault[2] for fault in faults)} wrong")
    return judged(faults, "from seed {}: {}, {} wrong decisions")


if __name__ == "__main__":
    sys.exit(main())
