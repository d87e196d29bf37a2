"""Change every fact of certified run folders in turn: each must be refused, or named as not covered.

Usage: python tests/safety/fuzz_facts.py [--limit 50]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.safety.facts import attack, make_folders, verdict


def main() -> int:
    """Return the exit code: 1 if a false folder was believed, or a true one was not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, help="Facts of each folder, spread over all of them; all by default.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        folders = make_folders(work)
        refused = [folder.name for folder in folders if not verdict(folder)[0]]
        found = attack(folders, work, options.limit)
    count = found["refused"] + found["named"] + len(found["believed"])
    print(f"{count} forged folders: {found['refused']} refused, {found['named']} accepted with the fact not covered")
    for text in [*(f"BELIEVED: {text}" for text in found["believed"]), *(f"REFUSED, but true: {n}" for n in refused)]:
        print(text)
    return 1 if found["believed"] or refused else 0


if __name__ == "__main__":
    sys.exit(main())
