"""The HTML page: complete, well formed, and without a reference to anything outside."""

import functools
import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from screenpath.catalogue.specs import SPECS
from screenpath.report.show import summary_of
from tests.report.conftest import write_cv

pytest.importorskip("matplotlib", reason="the page has pictures by matplotlib")
from screenpath.report.page import page
from tests.conftest import HANGS

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
EMPTY = {"meta", "br", "hr", "img", "link"}


class Reader(HTMLParser):
    """Collect references and identifiers; make sure that elements are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.references, self.identifiers, self.tags = [], [], [], set()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)
        for name, value in attributes:
            if name == "id":
                self.identifiers.append(value)
            elif name in ("src", "href", "xlink:href", "data", "action", "srcset"):
                self.references.append(value)
            elif not name.startswith("xmlns"):
                assert "://" not in (value or ""), (tag, name, value)
                self.references += re.findall(r"url\(([^)]*)\)", value or "")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def drawn(runs):
    return functools.cache(lambda name: page(runs[name]))


@pytest.fixture
def words(monkeypatch):
    """Pages whose pictures are left out: most of the time goes into these."""
    monkeypatch.setattr("screenpath.report.page._figure", lambda run, kind: "")


@pytest.mark.parametrize("name", ["path", "grid", pytest.param("classes", marks=pytest.mark.wide_only)])
def test_nothing_is_loaded_from_elsewhere(drawn, name):
    read = Reader(drawn(name))
    assert {"svg", "table", "h1"} <= read.tags and not read.tags & {"script", "link", "iframe", "object"}
    assert read.references and all(value.startswith(("#", "data:")) for value in read.references)
    assert len(set(read.identifiers)) == len(read.identifiers)
    inside = {value[1:] for value in read.references if value.startswith("#")}
    assert inside <= set(read.identifiers)


def test_what_it_says(runs, tmp_path):
    text = page(write_cv(runs["path"], tmp_path / "cv")[0])
    for words in ("12 of 12 steps certified", "min 1/2 ||w||^2", '<th scope="row">folds</th><td>5</td>'):
        assert words in text
    assert f"<pre>{escape(shlex.join(runs['path'].record['command']))}</pre>" in text
    assert "lower bound</th><td>0.08" in text and text.count("<svg") == 5
    steps = text[text.index("<h2>Steps</h2>") :]
    assert steps.count("<tr><td>") == 12 and steps.count('<th scope="col">') == 14


def test_it_begins_in_plain_words(runs, words):
    run, text = runs["path"], page(runs["path"])
    name = Path(run.record["data"]["path"]).name
    assert f"<title>svm on {name}</title>" in text and f"<h1>svm on {name}</h1>" in text
    head = text[text.index("<h1>") : text.index("<h2>")]
    assert head.count("<p>") == 3
    assert (
        f"12 {SPECS['svm'].title}" in head and "All of them are certified" in head and "Described below: step " in head
    )
    row = run.table[3]
    row["status"], before = "budget", row["status"]
    try:
        assert "11 of them are certified" in page(run)
    finally:
        row["status"] = before


def test_it_says_why_steps_are_not_certified_and_what_was_asked_and_done(runs, words):
    run = runs["path"]
    table = [dict(row) for row in run.table]
    for k, status, reason in (
        (2, "budget", "used <up>"), (4, "budget", "used <up>"), (5, "budget", "used <up>"), (6, "rounding", None),
        *((k, "skipped", "a signal") for k in (9, 10, 11)),
    ):  # fmt: skip
        table[k].update(status=status, reason=reason)
    cut = replace(run, table=table, steps=[row for row in table if row["status"] != "skipped"])
    text = page(cut)
    assert "the others say below why" in text
    assert '<th scope="row">budget: used &lt;up&gt;</th><td>3 steps: 2, 4 to 5</td>' in text
    assert '<th scope="row">rounding</th><td>step 6</td>' in text
    assert '<th scope="row">skipped: a signal</th><td>3 steps: 9 to 11</td>' in text
    done = f"0.01 to {table[8]['C']:.6g}, 9 values"
    assert f'<th scope="row">C</th><td>0.01 to 10, 12 values; done: {done}</td>' in text
    assert f"C = 0.01 to 10, 12 values; done: {done}" in " ".join(str(summary_of(cut)).split())
    assert "done:" not in page(run) and "budget: " not in page(run)


def test_the_largest_coefficients_are_named(runs, words):
    run = runs["path"]
    largest = summary_of(run).features
    run.record["data"]["feature_names"] = [f"<{k}>" for k in range(run.n_features)]
    try:
        text = page(run)
    finally:
        del run.record["data"]["feature_names"]
    rows = re.findall(r"<tr><td>&lt;(\d+)&gt;</td><td>([^<]+)</td><td>([^<]+)</td></tr>", text)
    assert [(int(name) + 1, weight, scaled) for name, weight, scaled in rows] == [
        (f.number, f"{f.weight:.6g}", f"{f.scaled:.6g}") for f in largest
    ]
    assert largest and "Largest coefficients" in text


def test_pictures_have_names_for_those_who_do_not_see_them(drawn):
    text = drawn("path")
    pictures = re.findall(r'<svg role="img" aria-label="([^"]+)"[^>]*><title>([^<]+)</title>', text)
    assert len(pictures) == text.count("<svg") and all(label == title for label, title in pictures)
    assert "prefers-color-scheme: dark" in text


def test_names_are_escaped(runs):
    path = runs["path"].record["data"]["path"]
    runs["path"].record["data"]["path"] = "<b>&.libsvm"
    try:
        text = page(runs["path"])
    finally:
        runs["path"].record["data"]["path"] = path
    assert "<b>" not in text and "&lt;b&gt;&amp;.libsvm" in text


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_a_browser_shows_it(drawn, tmp_path):
    (tmp_path / "report.html").write_text(drawn("path"))
    picture = tmp_path / "page.png"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    flags += ["--window-size=1000,3000", f"--screenshot={picture}", (tmp_path / "report.html").as_uri()]
    subprocess.run([CHROMIUM, *flags], check=True, timeout=HANGS, capture_output=True)
    from matplotlib.image import imread

    pixels = imread(picture)[..., :3]
    assert pixels.shape == (3000, 1000, 3)
    blue = np.all(np.abs(pixels - np.array([0x00, 0x72, 0xB2]) / 255) < 0.02, axis=2)
    assert blue.sum() > 20_000  # the areas of R
