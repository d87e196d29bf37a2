"""The report in a real browser: axe-core finds nothing to complain of, by day and by night. `make test-browser`."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from screenpath.report.page import page
from screenpath.store.open import open_run
from tests.conftest import HANGS
from tests.report.conftest import runs, write_cv  # noqa: F401 (fixture)

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
# What the page is asked, and where it puts the answer.
ASK = """
axe.run(document, {resultTypes: ["violations", "incomplete"]}).then(found => {
  const short = one => ({id: one.id, help: one.help, nodes: one.nodes.map(node => node.html.slice(0, 200))});
  const out = document.createElement("pre");
  out.id = "axe-found";
  out.textContent = JSON.stringify({violations: found.violations.map(short), passes: found.passes.length,
    dark: matchMedia("(prefers-color-scheme: dark)").matches});
  document.body.appendChild(out);
});
"""
SCHEMES = {"light": 1, "dark": 0}


@pytest.fixture(scope="module")
def browser():
    """Return the path of a browser."""
    found = os.environ.get("BROWSER_BINARY") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium (Debian: apt-get install chromium)")
    if not AXE.is_file():
        pytest.skip("axe-core is not there (make test-browser fetches it)")
    return found


@pytest.fixture(scope="module")
def pages(runs, tmp_path_factory):  # noqa: F811 (fixture)
    """Return reports of several kinds as HTML."""
    folder = tmp_path_factory.mktemp("pages")
    validated = folder / "cv"
    write_cv(runs["path"], validated)
    return {"cv": page(open_run(validated)), "grid": page(runs["grid"]), "kernel": page(runs["kernel"])}


def shown(browser: str, file: Path, scheme: str) -> str:
    """Return the document as the browser has it when its scripts are done."""
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--virtual-time-budget=20000", f"--user-data-dir={file.parent / 'profile'}",
        f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
        "--dump-dom", file.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("kind", "scheme"), [("cv", "light"), ("cv", "dark"), ("grid", "dark"), ("kernel", "light")])
def test_axe_finds_nothing(browser, pages, tmp_path, kind, scheme):
    text, count = POLICY.subn("", pages[kind])  # which forbids the page any script, this one too
    assert count == 1
    script = f"<script>{AXE.read_text()}</script><script>{ASK}</script>"
    file = tmp_path / "report.html"
    file.write_text(text.replace("</body>", f"{script}</body>"))
    answer = re.search(r'<pre id="axe-found">(.*?)</pre>', shown(browser, file, scheme), re.DOTALL)
    assert answer, "axe-core has not answered"
    found = json.loads(answer[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert found["dark"] == (scheme == "dark") and found["passes"] > 10
    assert found["violations"] == [], "\n".join(map(str, found["violations"]))


def test_axe_would_find_something(browser, tmp_path):
    """The test itself: a page with a fault of each kind that is looked for in reports."""
    bad = '<html><head></head><body><img src="data:,"><p style="color:#ccc;background:#fff">pale</p></body></html>'
    file = tmp_path / "bad.html"
    file.write_text(bad.replace("</body>", f"<script>{AXE.read_text()}</script><script>{ASK}</script></body>"))
    text = shown(browser, file, "light")
    assert all(f'"id":"{name}"' in text for name in ("image-alt", "html-has-lang", "document-title", "color-contrast"))


def test_the_policy_keeps_scripts_out(browser, pages, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(pages["kernel"].replace("</body>", '<script>document.title = "taken over"</script></body>'))
    assert "taken over</title>" not in shown(browser, file, "light")
