"""One HTML page about a run that needs nothing else: no network, no script, pictures as inline SVG."""

from __future__ import annotations

import re
import shlex
from html import escape
from itertools import pairwise
from pathlib import PurePath

from screenpath.cv.choice import folds_of, found_lines
from screenpath.export.export import title_of
from screenpath.report import series
from screenpath.report.figures import seconds_text, to_bytes
from screenpath.report.show import RunSummary, facts_of, summary_of
from screenpath.walk.step import CERTIFIED

ROWS = 40  # longer step tables are collapsed
RANGES = 12  # most ranges of steps listed with a reason
COLUMNS = (
    "status", "primal", "dual", "rel_gap", "n_R", "n_L", "n_E", "rejection_ratio", "n_features_screened", "nnz_w",
    "epochs", "passes",
)  # fmt: skip

CAPTIONS = {
    "rejection": "What the rule screened before each solve. The dashed line is what any rule could screen at most.",
    "coefficients": "Coefficients along the path; those that become largest are named, the others grey.",
    "gap": "Primal minus dual on the full data, over the primal, at each step; below the dashed line is certified.",
    "time": "Seconds of screening, solving and certifying.",
    "cv": "Mean score over the folds with its standard error, and both choices.",
    "gammas": "Mean score over the folds at every pair of gamma and C, its contours, and the best pair.",
    "loo": "Errors in training, and with each row left out: bounds that are proven, shaded where they differ.",
    "influence": "Each row by the model of all rows and by that of the others; large where the weights move far.",
    "grid": "Shares of samples and features screened over the grid of both parameters.",
}

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 62rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid #ccc; }
pre { background: #f4f4f4; padding: .7rem; white-space: pre-wrap; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-size: .9rem; } td, th { padding: .15rem .7rem .15rem 0; text-align: left;
        vertical-align: top; overflow-wrap: anywhere; }
table.steps td, table.steps th { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
th { font-weight: 600; } .wide { overflow-x: auto; }
figure { margin: 1rem 0 2rem; } figcaption { color: #555; }
svg { max-width: 100%; height: auto; background: #fff; }
.yes { color: #00614a; } .no { color: #a63c00; font-weight: 600; }
@media (prefers-color-scheme: dark) { body { color: #e6e6e6; background: #161616; } pre { background: #262626; }
  h2 { border-color: #555; } figcaption { color: #b5b5b5; } .yes { color: #5fd0a8; } .no { color: #ff9a6b; } }
@media print { body { max-width: none; } figure { break-inside: avoid; } }
"""


def page(run, more: tuple[str, ...] = ()) -> str:
    """Return the report of a run as HTML, with the pictures that it has and ``more``.

    It refers to no other file or address; a policy in its head forbids browsers to load one.
    """
    record = run.record
    title = f"{run.model} on {PurePath(str(record['data'].get('path', 'data'))).name}"
    summary = summary_of(run)
    names = ["step", *run.parameters, *(name for name in COLUMNS if name in run.record["columns"])]
    names += [run.score_column] if run.score_column else []
    table = _table("steps", names, ([row.get(name) for name in names] for row in run.steps))
    origin = {**(record.get("versions") or {}), "SHA-256 of the data": record["data"].get("sha256")}
    origin["seed"] = record["options"].get("seed")
    parts = [
        f"<h1>{escape(title)}</h1>", *(f'<p class="no">{escape(notice)}</p>' for notice in run.notices),
        *(f"<p>{escape(sentence)}</p>" for sentence in _in_words(summary)), "<h2>Problem</h2>",
        f"<p><code>{escape(str(record.get('objective', '')))}</code></p>", _pairs(facts_of(run).items()),
        "<h2>Certificate</h2>", _certificate(summary), *_choice(run), *_largest(summary), "<h2>Pictures</h2>",
        *(_figure(run, kind) for kind in (*series.available(run), *more)), "<h2>Steps</h2>",
        table if len(run.steps) <= ROWS else f"<details><summary>{len(run.steps):,} steps</summary>{table}</details>",
        "<h2>How to repeat it</h2>",
        f"<pre>{escape(shlex.join(str(word) for word in record.get('command') or []))}</pre>",
        _pairs((name, value) for name, value in origin.items() if value is not None),
    ]  # fmt: skip
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n" + "\n".join(parts)
    ) + "\n</main>\n</body>\n</html>\n"


def _pairs(pairs) -> str:
    rows = (f'<tr><th scope="row">{escape(name)}</th><td>{escape(str(value))}</td></tr>' for name, value in pairs)
    return "<table>" + "".join(rows) + "</table>"


def _in_words(summary: RunSummary) -> list:
    run, n = summary.run, summary.run.record["data"].get("n_samples")
    what = (
        f"{summary.asked:,} {title_of(run)}, one for each point of a grid, fitted to {f'{n:,} ' if n else ''}"
        f"samples with {run.n_features:,} features: each weighs errors on these samples differently against the size of"
        " its coefficients."
    )
    worst = max((row["rel_gap"] for row in run.steps if row.get("rel_gap") is not None), default=0.0)
    if summary.certified == summary.asked:
        proof = (
            "All of them are certified: a bound over all samples, with every rounding error counted, proves that none"
            f" is further above the best possible objective than {worst:.1e} of it."
        )
    else:
        proof = f"{summary.certified:,} of them are certified; the others say below why they are not."
    scores = "; ".join(str(score) for score in summary.scores)
    return [what, proof, f"Described below: {run.describe(summary.step)}{f': {scores}' if scores else ''}."]


def _largest(summary: RunSummary) -> list:
    if not summary.features:
        return []
    note = "" if summary.run.kernel else f" Scaled: {summary.scaled_words()}."
    step = summary.run.describe(summary.step)
    what = f"{len(summary.features)} of {summary.nonzero:,} with a weight, at {step}.{note}"
    what += f" {summary.negligible_words()}." if summary.negligible else ""
    table = _table("largest coefficients", *summary.table())
    return ["<h2>Largest coefficients</h2>", f"<p>{escape(what)}</p>", table]


def _table(what: str, heads, rows) -> str:
    """Return a table of numbers with a head; ``what`` describes it for those who do not see it."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>\n" for row in rows)
    # A wide table scrolls, also by keys, for which it must take the focus.
    region = f'<div class="wide" tabindex="0" role="region" aria-label="Table: {what}">'
    return f'{region}<table class="steps"><tr>{head}</tr>\n{body}</table></div>'


def _certificate(summary: RunSummary) -> str:
    run = summary.run
    verdict = "yes" if summary.certified == summary.asked else "no"
    first, *rest = summary.certificate()
    pairs = [("stopping rule", run.record.get("stopping_rule", "primal - dual <= tol * primal on the full data"))]
    pairs += [(f"{name}, in all", seconds_text(float(s.sum()))) for name, s in series.times(run)]
    lines = "".join(f"<p>{escape(line)}</p>" for line in rest)
    return f'<p class="{verdict}">{escape(first)}.</p>' + _reasons(run) + lines + _pairs(pairs)


def _reasons(run) -> str:
    """Return why steps are not certified, and which: one line per reason."""
    found: dict[str, list[int]] = {}
    for row in run.table:
        if row["status"] != CERTIFIED:
            reason = row.get("reason")
            found.setdefault(f"{row['status']}: {reason}" if reason else row["status"], []).append(row["step"])
    counts = {why: "step" if len(steps) == 1 else f"{len(steps):,} steps:" for why, steps in found.items()}
    return _pairs((why, f"{counts[why]} {_ranges(steps)}") for why, steps in found.items()) if found else ""


def _ranges(steps: list[int]) -> str:
    """Return increasing numbers as ranges: ``3, 5 to 9``; only the first if there are many."""
    breaks = [k for k in range(1, len(steps)) if steps[k] != steps[k - 1] + 1]
    runs = [(steps[a], steps[b - 1]) for a, b in pairwise([0, *breaks, len(steps)])]
    words = [f"{low}" if low == high else f"{low} to {high}" for low, high in runs[:RANGES]]
    return ", ".join(words) + (", ..." if len(runs) > RANGES else "")


def _choice(run) -> list:
    if not run.has("cv.json"):
        return []
    record = series.read_cv(run).record
    count, whole = folds_of(record)
    pairs = [("folds", record["folds"] if count == whole else f"{count} of {whole}"), *found_lines(record)]
    if record.get("at_boundary"):
        pairs.append(("warning", f"the best is at the end of the range: {record['at_boundary']}"))
    return ["<h2>Cross-validation</h2>", _pairs(pairs)]


def _figure(run, kind: str) -> str:
    from screenpath.report.plots import draw

    svg = inline_svg(to_bytes(draw(run, kind), "svg").decode("utf-8"), kind)
    caption = escape(CAPTIONS[kind])
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{caption}"', 1).replace(
        ">", f"><title>{caption}</title>", 1
    )
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"


def inline_svg(text: str, prefix: str) -> str:
    """Return an SVG document as an element of a page.

    The XML head and the metadata (which name addresses) go. So do identifiers that nothing refers to; the others get a
    prefix, because a page holds several pictures.
    """
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
    text = re.sub(r' id="([^"]*)"', lambda found: f' id="{prefix}-{found[1]}"' if found[1] in used else "", text)
    text = text.replace("url(#", f"url(#{prefix}-")
    return re.sub(r'href="#', f'href="#{prefix}-', text).strip()


def _cell(value) -> str:
    if value is None:
        return ""
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))
