"""What a published number is worth here: verdicts by computation, and the index of all pages.

Each claim of a paper is compared with the number of the page: *reproduced*, *direction* (right side, other size),
*not*, or *open* where nothing was measured, or a solver did not finish. A page keeps its claims in a JSON file.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("results")
REPRODUCED, DIRECTION, NOT, OPEN = "reproduced", "direction", "not", "open"
SIGNS = {REPRODUCED: "🟩", DIRECTION: "🟨", NOT: "🟥", OPEN: "⬜"}
PART = 0.75  # of a published ratio that reproduces it
NEAR, HALF = 0.05, 0.5  # distance of two shares that are alike; part of a share that is its direction
MOST = 0.75  # of a table's claims that make its cell green, or red


def of_ratio(published: float, ours: float | None) -> str:
    """Judge a speed-up: reproduced from three quarters of the published one, direction on its side of 1."""
    if ours is None:
        return OPEN
    if ours >= PART * published and (ours > 1.0) == (published > 1.0):
        return REPRODUCED
    return DIRECTION if (ours > 1.0) == (published > 1.0) else NOT


def of_share(published: float, ours: float | None) -> str:
    """Judge a share of rows or features: reproduced within 0.05, direction from half of it."""
    if ours is None:
        return OPEN
    if abs(ours - published) <= NEAR:
        return REPRODUCED
    return DIRECTION if ours >= HALF * published else NOT


def of_at_least(published: float, ours: float | None) -> str:
    """Judge a share that the paper says is exceeded."""
    return REPRODUCED if ours is not None and ours >= published else of_share(published, ours)


def of_order(holds: bool | None) -> str:
    """Judge a statement that holds or does not."""
    return OPEN if holds is None else REPRODUCED if holds else NOT


def together(verdicts: list[str]) -> str:
    """Return the verdict of a table or figure: that of three quarters of what was judged, else direction."""
    judged = [one for one in verdicts if one != OPEN]
    if not judged:
        return OPEN
    for one in (REPRODUCED, NOT):
        if judged.count(one) >= MOST * len(judged):
            return one
    return DIRECTION


# -- age ---------------------------------------------------------------------------------------------------------------

# What a family's pages speak of: its own files of these rooms, by a part of their names; the rest belongs to all.
ROOMS = ("regions", "screen", "solve", "problem", *(f"kernels/{k}" for k in ("problem", "screen", "solve")))
FAMILIES = {
    "l1svm": ("l1",), "sparse": ("sparse", "sifs", "penalised", "conditioning"),
    "kernel": ("kernel", "smo", "active_set"),
}  # fmt: skip
APART = (  # not of the papers' pages
    "removal", "free", "intercept", "lever", "plugins", "base", "unread", "groups", "levels", "plane",
)  # fmt: skip
BOX = (  # not of the other families
    "box", "newton", "cd", "descent", "face", "pathwise", "dome", "start", "multiplier", "working_set", "pool",
    "survey", "preconditioner", "problem/sharp", "problem/ends", "solve/margins",
)  # fmt: skip


def spoken_of(family: str) -> list[Path]:
    """Return the files of rules, kernels and solvers that the pages of a family speak of; "all" speaks of each."""
    own = FAMILIES.get(family, ())
    others = [mark for name, marks in FAMILIES.items() if name != family for mark in marks]
    others += BOX if family in ("l1svm", "sparse") else []
    found = [file for room in ROOMS for file in sorted((ROOT / "screenpath" / room).glob("*.py"))]
    if family == "all":
        return found
    names = {f: f"{f.parent.name}/{f.stem}" for f in found if f.stem != "__init__"}
    names = {f: name for f, name in names.items() if not any(m in f.stem for m in APART)}
    return [f for f, name in names.items() if any(m in name for m in own) or not any(m in name for m in others)]


def digest(file: Path) -> str:
    """Return a hash of a file's code: comments, docstrings and layout do not age a page, nor do the wrappers and counts
    of references that a kernel is compiled with.
    """
    tree = ast.parse(file.read_bytes())
    for node in ast.walk(tree):
        decorators = getattr(node, "decorator_list", [])
        for k, made in enumerate(decorators):
            if isinstance(made, ast.Call):
                made.keywords = [word for word in made.keywords if word.arg not in ("leaf", "inner")]
                decorators[k] = made if made.args or made.keywords else made.func
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            first.value.value = ""
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:12]


def digests(family: str) -> dict[str, str]:
    """Return the hashes of what a family's pages speak of, by file."""
    return {file.relative_to(ROOT).as_posix(): digest(file) for file in spoken_of(family)}


def changed_since(record: dict) -> list[str]:
    """Return the files whose code differs from that which a page speaks of; its record is its JSON file.

    One that is gone is named by those that spoke of it.
    """
    return sorted(name for name, now in digests(record["family"]).items() if now != record["digests"].get(name))


# -- index -------------------------------------------------------------------------------------------------------------


def index(folder: Path = RESULTS) -> str:
    """Return the index of the pages of a folder: a coloured cell for each table and figure of the papers."""
    records = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    text = [INDEX]
    for record in sorted((one for one in records if "claims" in one), key=lambda one: one["name"] == "new"):
        quick = " (quick)" if record["quick"] else ""
        claims = [claim for claim in record["claims"] if claim["verdict"] != OPEN]
        good = sum(claim["verdict"] == REPRODUCED for claim in claims)
        text.append(f"\n## [{record['title']}]({record['name']}.md){quick}\n")
        text.append(
            f"{good} of {len(claims)} judged claims are reproduced.\n\n| | " + " | ".join(SIGNS) + " | verdict |"
        )
        text.append("|---|" + "---:|" * len(SIGNS) + "---|")
        cells = [claim.get("figure", claim["section"]) for claim in record["claims"]]
        for section in sorted(dict.fromkeys(cells), key=placed):
            found = [claim["verdict"] for claim, cell in zip(record["claims"], cells, strict=True) if cell == section]
            counts = " | ".join(str(found.count(one) or "") for one in SIGNS)
            text.append(f"| {section} | {counts} | {SIGNS[together(found)]} {together(found)} |")
    return "\n".join(text) + "\n"


def placed(cell: str) -> tuple:
    """Return where a cell of the index stands: figures of their own by number, behind the sections in their order."""
    number = re.fullmatch(r"Figures? (\d+)[^:]*", cell)
    return (1, int(number[1])) if number else (0, 0)


INDEX = f"""\
# The five papers: tables and figures, reproduced or not

Made by `examples/papers/reproduce.py index` from the pages' records. Each published number or statement is a claim, and
a program judges it: **reproduced**, a ratio of at least {PART:g} of the published one on the same side of 1, a share
within {NEAR:g}, an order that holds; **direction**, the same side of 1, or at least {HALF:g} of the share; **not**;
**open**, where the set is not at hand or a solver did not finish. A cell is {SIGNS[REPRODUCED]} or {SIGNS[NOT]} where
{MOST:.0%} of its judged claims are, else {SIGNS[DIRECTION]}. The last page has what no paper said: there a claim holds
or does not."""
