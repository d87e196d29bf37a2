"""The site that `make docs` makes: whole, without a network, and with all that is declared."""

import html
import importlib.util
import json
import re

import pytest

from screenpath.catalogue.specs import SPECS
from screenpath.cli.app import COMMANDS
from tests.conftest import ROOT

GUIDE = ROOT / "examples" / "guide"
GALLERY = ROOT / "examples" / "gallery"
REMOTE = re.compile(r"""(?:src|srcset)=["']?(?:https?:)?//|<link[^>]+href=["']?(?:https?:)?//|@import""")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="MkDocs is not installed (extra: docs)")
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed (extra: docs)")
    spec = importlib.util.spec_from_file_location("site_of_the_guide", GUIDE / "site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("site")
    module.write_pages(folder / "pages")
    module.build(folder / "pages", folder / "out")
    return folder / "out"


def test_every_page_is_there_and_needs_no_network(site):
    for page in (*GUIDE.glob("*.md"), *GALLERY.glob("*.md")):
        name = "index" if page.stem == "README" else page.stem
        assert (site / "examples" / page.parent.name / f"{name}.html").is_file(), page
    for page in site.rglob("*.html"):
        assert not REMOTE.search(page.read_text()), page
    assert "Start" in (site / "index.html").read_text()


def test_links_lead_to_pages(site):
    for page in site.rglob("*.html"):
        for link in re.findall(r'href="([^"#:]+)(?:#[^"]*)?"', page.read_text()):
            assert (page.parent / html.unescape(link)).exists(), (page, link)


def test_links_within_pages_have_a_target(site):
    ids = {page.resolve(): set(re.findall(r'id="([^"]*)"', page.read_text())) for page in site.rglob("*.html")}
    for page in ids:
        for link in re.findall(r'href="([^":]*#[^"]+)"', page.read_text()):
            name, _, part = html.unescape(link).partition("#")
            assert part in ids[(page.parent / name).resolve() if name else page], (page, link)


def test_the_guide_is_in_the_menu_and_in_the_search(site):
    menu = (site / "index.html").read_text().partition("<nav")[2].partition("</nav>")[0]
    found = (site / "search_index.js").read_text()
    sections = json.loads(found.removeprefix("const SECTIONS = ").rstrip(";\n"))
    searched = {one["url"].partition("#")[0] for one in sections}
    for page in (*GUIDE.glob("*.md"), *GALLERY.glob("*.md")):
        name = f"examples/{page.parent.name}/{page.stem}.html"
        assert page.stem == "README" or name in menu and name in searched, page
    names = ("Start", "Use", "Python", "Understand", "Scale", "Gallery")
    order = [menu.index(f"<summary>{name}</summary>") for name in names]
    assert order == sorted(order)
    assert all(one["heading"] and one["page"] and "<" not in one["heading"] for one in sections)
    assert any("screened" in one["text"] and one["page"] == "Glossary" for one in sections)
    assert {path.name for path in (GUIDE / "theme").iterdir()} == {"main.html", "style.css", "site.js"}
    assert all((site / name).is_file() for name in ("style.css", "site.js"))


def test_the_reference_has_what_is_declared(site):
    reference = site / "examples" / "guide" / "reference"
    for name, spec in SPECS.items():
        text = html.unescape((reference / f"{name}.html").read_text())
        lost = [one.name for one in spec.path_options if f"--{one.name.replace('_', '-')}" not in text]
        assert not lost and spec.default_rule in text
    for name in COMMANDS:
        assert (reference / f"{name}.html").is_file(), name


def test_formulas_are_shown_and_not_their_source(site):
    text = (site / "examples" / "guide" / "theory.html").read_text()
    assert text.count("<math ") > 40 and "\\frac" not in text and "$" not in text.partition("<body")[2]
    assert "<p>\n<math" not in text  # of a paragraph, not beside it
