"""A table of words from works of art: `python examples/gallery/words.py ART.CSV.GZ WORDS.CSV`.

A row for each work: its artist, whether it was made before 2000 or since, and a column of 0 and 1 for each word that
stands in the title or the materials of at least ten works.
"""

import csv
import gzip
import re
import sys
from collections import Counter

LEAST = 10  # works


def main(source: str, target: str) -> None:
    """Read the works and write the table."""
    with gzip.open(source, "rt", encoding="utf-8", newline="") as file:
        works = list(csv.DictReader(file))
    found = [set(re.findall(r"[a-z]{3,}", f"{one['title']} {one['medium']}".lower())) for one in works]
    counts = Counter(word for words in found for word in words)
    columns = sorted(word for word, count in counts.items() if count >= LEAST)
    with open(target, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["artist", "made", *columns])
        for one, words in zip(works, found, strict=True):
            made = "since 2000" if int(one["year"]) >= 2000 else "before 2000"
            table.writerow([one["artist"], made, *(int(word in words) for word in columns)])
    print(f"{len(works)} works, {len(columns)} words")


if __name__ == "__main__":
    main(*sys.argv[1:])
