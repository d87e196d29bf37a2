"""What is built and what stands around it; `make release-check` installs and uses it."""

import io
import re
import tarfile
import zipfile

import pytest

import screenpath
from tests import release
from tests.conftest import ROOT

ABOUT = "Requires-Python: >=3.10\nDescription-Content-Type: text/markdown\n"
WHOLE = {
    **{f"screenpath/{name}": "" for name in release.NEEDED},
    **{f"screenpath-1.0.0.data/data/share/{name}": "" for name in release.SHARED},
    "screenpath-1.0.0.dist-info/METADATA": ABOUT, "screenpath-1.0.0.dist-info/licenses/LICENSE": "",
}  # fmt: skip
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "screenpath/py.typed")


def wheel_of(folder, files):
    path = folder / "screenpath-1.0.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


@pytest.mark.parametrize(
    "change, words",
    [
        ({"screenpath/big": "x" * (release.MOST + 1)}, "more than"),
        ({"tests/conftest.py": ""}, "outside of the package"), ({"screenpath/py.typed": None}, "lacks ['py.typed']"),
        ({f"screenpath-1.0.0.data/data/share/{release.SHARED[0]}": None}, "lacks ['man/man1/screenpath.1']"),
        ({"screenpath-1.0.0.dist-info/licenses/LICENSE": None}, "no licence"),
        ({"screenpath-1.0.0.dist-info/METADATA": ABOUT.splitlines()[1]}, "for which Python"),
        ({"screenpath-1.0.0.dist-info/METADATA": ABOUT.splitlines()[0]}, "not the README"),
    ],
)  # fmt: skip
def test_faults_of_a_wheel_are_found(tmp_path, change, words):
    assert release.wheel_fault(wheel_of(tmp_path, WHOLE)) is None
    files = {name: text for name, text in {**WHOLE, **change}.items() if text is not None}
    assert words in release.wheel_fault(wheel_of(tmp_path, files))


@pytest.mark.parametrize("left_out", [None, *SOURCES])
def test_faults_of_an_sdist_are_found(tmp_path, left_out):
    path = tmp_path / "screenpath-1.0.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in SOURCES:
            if name != left_out:
                archive.addfile(tarfile.TarInfo(f"screenpath-1.0.0/{name}"), io.BytesIO())
    fault = release.sdist_fault(path)
    assert fault is None if left_out is None else fault == f"it lacks {[left_out]}"


def test_the_oldest_dependencies_are_those_of_the_project():
    found = release.oldest()
    assert len(found) == 5 and all(re.fullmatch(r"[a-z]+==[\d.]+\.\*", one) for one in found), found
    assert [one.partition("==")[0] for one in found] == ["numpy", "scipy", "click", "rich", "numba"]


def test_the_names_of_scipy_are_those_of_its_oldest_version():
    """``scipy.sparse`` of 1.11 has these; of another, look there first, and let `make release-check` try it."""
    known = {"issparse", "csr_array", "csc_array", "coo_array", "csr_matrix", "vstack", "sparray", "spmatrix"}
    files = (ROOT / "screenpath").rglob("*.py")
    used = {name for file in files for name in re.findall(r"(?<![\w.])sp\.(\w+)", file.read_text())}
    own = {"index_type", "row_squares"}
    assert {"csr_array", "issparse"} < used <= known | own, used - known


def test_one_version_everywhere():
    project = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    citation = (ROOT / "CITATION.cff").read_text()
    assert project == screenpath.__version__ == re.search(r"^version: (.*)", citation, re.MULTILINE)[1]
    newest, day = re.search(r"^## (\S+) \((.*)\)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE).groups()
    assert newest == project and day == re.search(r'^date-released: "(.*)"', citation, re.MULTILINE)[1]


def test_the_papers_whose_tables_are_made_are_cited():
    citation = (ROOT / "CITATION.cff").read_text().lower()
    records = sorted((ROOT / "examples" / "papers" / "results").glob("*20*.json"))  # of the papers' years
    pages = [record.with_suffix(".md") for record in records]
    titles = {re.sub(r" \(.*", "", page.read_text().partition("\n")[0].partition(": ")[2].lower()) for page in pages}
    assert len(titles) == 5
    assert [title for title in titles if title.replace("svms", "support vector machines") not in citation
            and title not in citation and title + "s" not in citation] == []  # fmt: skip


def test_what_the_forge_runs_is_there():
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"make ([\w-]+)", workflow.partition("jobs:")[2])
    assert set(targets) == {"test", "release-check"}
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    assert {"ubuntu", "macos", "windows"} == set(re.findall(r"(\w+)-latest", workflow.partition("runs-on")[0]))
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    for path in re.findall(r"tests/\S+\.py", hooks):
        assert (ROOT / path).exists()


def test_the_changelog_has_a_line_an_entry_and_a_way_back():
    """A release has its own part; every row of what breaks says what, why, and how to keep the old."""
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    parts = [line for line in lines if line.startswith("## ")]
    named = re.compile(r"## \d+\.\d+\.\d+ \((unreleased|\d{4}-\d\d-\d\d)\)")
    assert parts and all(map(named.fullmatch, parts)), parts
    started = next(k for k, line in enumerate(lines) if line.startswith("## "))
    for line in lines[started:]:
        assert not line.startswith("  "), f"an entry of more than one line: {line}"
        if line.startswith("|"):
            assert [len(cell.strip()) > 1 for cell in line.strip("|").split(" | ")] == [True] * 3 or "---" in line, line
