"""A page says when it is older than the rules, kernels and solvers that it speaks of; its sentences are generated."""

import importlib
import json
import re

import pytest

from tests.conftest import ROOT
from tests.width import WIDE

FOLDER = ROOT / "examples" / "papers"
RESULTS = FOLDER / "results"
RECORDS = sorted(RESULTS.glob("*.json"))


@pytest.fixture
def verdicts(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("verdicts")


@pytest.mark.parametrize("file", RECORDS, ids=lambda file: file.stem)
def test_a_page_is_as_new_as_what_it_speaks_of(file, verdicts):
    changed = verdicts.changed_since(json.loads(file.read_text(encoding="utf-8")))
    told = f"{file.stem} is older than {', '.join(changed)}: make papers PAGES={file.stem}"
    if changed and not WIDE:  # a change of a kernel does not wait for a page; a release does (make fuzz)
        pytest.skip(told)
    assert not changed, told


def test_age_is_of_code_and_not_of_words(verdicts, tmp_path):
    code = tmp_path / "code.py"
    code.write_text('"""Words."""\n\n\ndef rule(x):\n    """Return it."""\n    return 2 * x  # twice\n')
    first = verdicts.digest(code)
    code.write_text("@kernel(leaf=True)\ndef rule(x):\n    return 2 * x\n")
    compiled = verdicts.digest(code)
    others = ("@kernel", True), ("@kernel(inner=True)", True), ("@kernel(fastmath=SUMS)", False), ("", False)
    for other, same in others:
        code.write_text(f"{other}\ndef rule(x):\n    return 2 * x\n")
        assert (verdicts.digest(code) == compiled) is same
    code.write_text('"""Other words."""\ndef rule(x):\n    """Return it twice."""\n    return 2 * x\n')
    assert verdicts.digest(code) == first
    code.write_text('"""Other words."""\ndef rule(x):\n    """Return it twice."""\n    return 3 * x\n')
    assert verdicts.digest(code) != first
    record = {"family": "box", "digests": {**verdicts.digests("box"), "screenpath/screen/box.py": "another"}}
    assert verdicts.changed_since(record) == ["screenpath/screen/box.py"]


@pytest.mark.parametrize("family", ["box", "kernel", "l1svm", "sparse"])
def test_a_family_speaks_of_its_own_rules_and_solvers(family, verdicts):
    names = set(verdicts.digests(family))
    own = {
        "box": {"screen/box.py", "solve/newton.py", "kernels/solve/cd.py"},
        "kernel": {"screen/box.py", "solve/smo.py", "kernels/solve/smo.py", "problem/kernel.py"},
        "l1svm": {"screen/l1svm.py", "solve/l1cd.py", "kernels/problem/l1svm.py"},
        "sparse": {"screen/sparse.py", "kernels/screen/sifs.py", "problem/sparse.py"},
    }
    assert {f"screenpath/{name}" for name in own[family]} <= names
    others = set().union(*(files for other, files in own.items() if other not in (family, "box", "kernel")))
    assert not {f"screenpath/{name}" for name in others} & names


def test_the_index_is_that_of_the_records(verdicts):
    assert (RESULTS / "README.md").read_text(encoding="utf-8") == verdicts.index()


@pytest.mark.parametrize("file", RECORDS, ids=lambda file: file.stem)
def test_every_claim_is_on_its_page_as_judged(file):
    record = json.loads(file.read_text(encoding="utf-8"))
    page = file.with_suffix(".md").read_text(encoding="utf-8")
    table = page.split("\n## Claims\n")[1].split("\n## ")[0]
    judged = re.findall(r"^\| .* (?:reproduced|direction|not|open) \|$", table, re.MULTILINE)
    assert len(judged) == len(record["claims"])
    for claim in record["claims"]:
        assert f"| {claim['section']} | {claim['claim']} |" in table
