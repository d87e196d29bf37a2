"""Change certificates at random until many are no longer true: the checker must reject every one of these.

Usage: python tests/safety/fuzz_verify.py [--count 1000] [--seed 0]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.safety.certificates import attack, make_runs, survive


def main() -> int:
    """Return the exit code: 1 if a certificate that is not true was accepted, or one ended in no words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="Certificates that are no longer true.")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        certificates = make_runs(Path(folder), options.seed)
        found = attack(certificates, options.count, options.seed)
        extremes = survive(certificates, options.count, options.seed)
    print(
        f"{found['false'] - len(found['missed'])} of {found['false']} certificates that are no longer true rejected, "
        f"{found['accepted']} of {found['true']} that still are accepted"
    )
    for kind, count in sorted(found["kinds"].items()):
        print(f"  {kind:<20}{count}")
    for text in found["missed"]:
        print(f"MISSED: {text}")
    print(f"{extremes['refused']} of {options.count} certificates with an extreme entry refused")
    for text in (*extremes["held"], *extremes["raised"]):
        print(f"MISSED: {text}")
    return 1 if found["missed"] or extremes["held"] or extremes["raised"] else 0


if __name__ == "__main__":
    sys.exit(main())
