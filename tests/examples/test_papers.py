"""The papers' pages are made of the toys and of small stand-ins, and their tables say what they have to."""

import gzip
import importlib
import json

import pytest

from tests.conftest import ROOT

FOLDER = ROOT / "examples" / "papers"
PLACES = {
    "binary/pcmac": "wang_toy2", "binary/breast_cancer": "breast_cancer", "multiclass/news20": "digits",
    "regression/cadata": "diabetes",
}  # fmt: skip


@pytest.fixture
def reproduce(tmp_path, monkeypatch):
    """Return a function that runs ``reproduce.py``, and returns its exit code and the lines of the page."""
    monkeypatch.syspath_prepend(FOLDER)
    main = importlib.import_module("reproduce").main

    def made(name, *options, page=None):
        where = ("--page", tmp_path / page) if page else ()
        words = [name, tmp_path / "data", tmp_path / "out", "--repeats", 1, *where, *options]
        code = main([str(word) for word in words])
        file = (tmp_path / page if page else tmp_path / "out" / name) / f"{name}.md"
        return code, file.read_text().splitlines() if file.is_file() else []

    return made


@pytest.fixture
def stand_ins(tmp_path):
    """Put small data where the pages look for some of their sets."""
    for place, sample in PLACES.items():
        file = tmp_path / "data" / f"{place}.libsvm.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress((ROOT / "data_samples" / f"{sample}.libsvm").read_bytes()))


def cells(page, *start):
    """Return the cells of the first line of a table that starts so."""
    found = next(line for line in page if line.startswith("| " + " | ".join(start) + " |"))
    return [cell.strip() for cell in found.strip("|").split("|")]


def record(tmp_path, name):
    return json.loads((tmp_path / "out" / name / f"{name}.json").read_text())


def test_wang2014(reproduce, stand_ins, tmp_path):
    code, page = reproduce("wang2014", "--sets", "toy1,cadata", "--grid", 8, "--sweeps", 200, "--toy_sweeps", 500)
    assert code == 0
    found = cells(page, "toy1", "dvi")
    assert (
        found[2] == "8 of 8"
        and float(found[4]) > 0.5
        and found[12] == "59.15"
        and found[13].endswith(("reproduced", "direction", "not"))
    )
    assert float(found[4]) <= float(found[5])  # of all samples, and of those outside the kink
    assert page[2].startswith("screenpath ") and ", commit " in page[2]
    command = "svm OUT/wang-toy1.libsvm --intercept none --rule dvi --grid 8 --tol 1e-9"
    assert f"toy1: screenpath {command}" in page
    assert (tmp_path / "out" / "wang2014" / "wang2014-fig1.svg").stat().st_size > 1000
    assert cells(page, "cadata, centred", "dvi")[12] == "114.91"  # of the set that is solved
    claims = record(tmp_path, "wang2014")["claims"]
    assert {claim["section"] for claim in claims} >= {"Table 1: SVM on the toys", "Figure 1: DVI on the toys"}
    assert any(line.startswith("| cadata | ") and "**not the file" in line for line in page)
    assert any(line.startswith("| toy1 | ") and "`screenpath generate wang-toy1 --seed 0`" in line for line in page)


def test_one_table_of_a_page(reproduce):
    code, page = reproduce("wang2014", "--sets", "toy1", "--grid", 5, "--table", 1)
    assert code == 0 and [line for line in page if line.startswith("## ")][0] == "## Table 1: SVM on the toys"
    assert not any(line.startswith("## Figure") for line in page)
    with pytest.raises(SystemExit, match="has no table 9; it has: Table 1"):
        reproduce("wang2014", "--sets", "toy1", "--table", 9)


def test_ogawa2013(reproduce):
    code, page = reproduce("ogawa2013", "--sets", "toy", "--grid", 6, "--sweeps", 500)
    assert code == 0 and cells(page, "ssnsv")[1:4] == ["527", "2", "600"] and "🟩" in cells(page, "ssnsv")[5]
    heuristic, rule = (float(cells(page, "toy", name, "cold")[4]) for name in ("heuristic", "essnsv"))
    assert heuristic > rule > 0.0
    assert float(cells(page, "toy", "heuristic", "cold")[9]) > 0.0 == float(cells(page, "toy", "none", "cold")[9])
    poly, gaussian = (float(cells(page, "toy", f"{kernel} 1/d{more}")[3]) for kernel, more in
                      (("poly --gamma", " --degree 2"), ("rbf --gamma", "")))  # fmt: skip
    assert poly > 0.3 > gaussian
    known = cells(page, "toy", "essnsv", "C, loss known")
    assert 0.0 < float(known[3]) <= float(known[4]) and known[5].endswith("of 6")


def test_ogawa2014_linear(reproduce):
    few = ("--eps", 1e-1, "--tol", 1e-3, "--cmax", 1, "--cd_cmax", 1, "--cd_eps", 1e-1, "--sweeps", 200)
    code, page = reproduce("ogawa2014_linear", "--sets", "toy", "--quick", *few)
    assert code == 0 and [int(n) for n in cells(page, "it")[1:]] == [204, 248, 604, 750]
    labels = {cells(page, "toy", name)[2] for name in ("none", "bt1", "it", "it+shrinking")}
    assert len(labels) == 1  # all walk the same points
    ours, printed = (float(cells(page, "toy", "bt2")[k]) for k in (3, 2))
    assert ours <= printed + 5e-4
    assert cells(page, "acoustic (published)")[2] == "98.2"


def test_ogawa2014_kernel(reproduce, stand_ins, tmp_path):
    few = ("--eps", 1e-2, "--tol", 1e-4, "--cmax", 50, "--gammas", "10", "--ends", "10", "--shares", "0.5,0.9")
    code, page = reproduce("ogawa2014_kernel", "--sets", "bcd", *few)
    lines = [line for line in page if line.startswith("| bcd, 10/d: to C = ")]
    assert code == 0 and len(lines) == 12 and sum("L is empty" in line for line in lines) == 6
    assert any(line.startswith("Shrink over Shrink+IT, until no dual variable is at C:") for line in page)
    _, _, bt1, bt2, it = cells(page, "bcd, 10/d", "0.9")
    assert float(it) >= float(bt1) and float(it) >= float(bt2)
    claims = [one for one in record(tmp_path, "ogawa2014_kernel")["claims"] if "shrinking" in one["claim"]]
    assert [claim["published"] for claim in claims] == [pytest.approx(0.4 / 0.221, abs=0.01), pytest.approx(1.88)]


def test_hong2019(reproduce, stand_ins, tmp_path):
    few = ("--betas", 2, "--alphas", 4, "--part", 1, "--smoothing", 0.9, "--references", 3, "--printed", "pcmac")
    code, page = reproduce("hong2019", "--sets", "pcmac,news20,news20-1", "--quick", *few, "--starts", "warm,cold")
    assert code == 0 and sum(line.startswith("| pcmac | real-sim | 8 |") for line in page) == 10
    assert float(cells(page, "pcmac", "real-sim", "8", "sifs", "warm")[10]) > 0.0
    assert float(cells(page, "pcmac, plain SDCA", "real-sim", "8", "sifs", "cold")[10]) > 0.0
    assert cells(page, "news20, part", "news20", "4", "sifs")[11] != ""  # a part of the grid has a speed-up
    assert sum(line.count("(") for line in page if line.startswith("| 0.")) == 16  # Table 4
    drawn = [line[2:].split(":")[0] for line in page if line.startswith("![")]
    assert drawn == ["Fig. 3", "Fig. 4", "Fig. 7", "Fig. 11"]
    printed, ours = (float(cells(page, "pcmac", "sifs")[k]) for k in (2, 3))
    assert printed <= ours
    assert page[4].startswith("**Made with `--quick`**: betas 2 (full page: 10)")


def test_what_no_paper_said(reproduce, tmp_path):
    few = ("--fine", 40, "--attack", 12)
    code, page = reproduce("new", *few)
    claims = {claim["claim"]: claim for claim in record(tmp_path, "new")["claims"]}
    assert code == 0 and len(claims) == 64
    failed = [name for name, claim in claims.items() if claim["verdict"] != "reproduced"]
    assert not failed, failed  # no rule of ours is unsafe, every certificate is proven by the checker
    assert claims["unsafe decisions of our rule, all gaps"]["ours"] == 0
    assert int(cells(page, "printed.py:DVI")[2]) > 0  # the printed rule is, behind rough references
    assert (tmp_path / "out" / "new" / "new-inexact.svg").is_file()


def test_zhao2014(reproduce, stand_ins):
    code, page = reproduce("zhao2014", "--sets", "pcmac", "--grid", 4)
    assert code == 0
    assert [cells(page, "pcmac", "real-sim", name)[3] for name in ("org", "warm+scr", "default")] == ["4 of 4"] * 3
    found = cells(page, "pcmac", "real-sim", "shr")
    assert found[8] == "2.87" and found[11] == "815"  # 20.81 s over 7.25 s, and iterations, of real-sim
    assert cells(page, "pcmac", "1e-9")[5] == "0"  # ours, audited


def test_zhao2014_moves_a_set_away_from_zero(reproduce, stand_ins, tmp_path):
    (tmp_path / "data" / "binary" / "breast_cancer.libsvm.gz").rename(tmp_path / "data/binary/chowdary.libsvm.gz")
    code, page = reproduce("zhao2014", "--sets", "chowdary", "--grid", 2, "--limit", 0.5, "--table", 2)
    assert code == 0 and cells(page, "moved", "", "default")[3] == "2 of 2"
    first = (tmp_path / "out" / "zhao2014" / "chowdary-moved.libsvm").read_text().split()
    assert first[1].startswith("1:10000") and any(line.startswith("- **Centring**") for line in page)


def test_missing_sets_never_overwrite_a_page(reproduce, stand_ins, tmp_path, capsys):
    page = tmp_path / "pages" / "zhao2014.md"
    page.parent.mkdir()
    page.write_text("as it was\n")
    code, lines = reproduce("zhao2014", page="pages")
    assert code == 1 and lines == ["as it was"] and [page] == list(page.parent.iterdir())
    told = capsys.readouterr().err
    assert "chowdary.libsvm.gz is not there: microarray of Chowdary" in told and "stays as it was" in told
    reproduce("zhao2014", "--sets", "pcmac", "--grid", 3, page="pages")  # a part stays with the runs
    assert page.read_text() == "as it was\n" and (tmp_path / "out" / "zhao2014" / "zhao2014.md").is_file()


def test_a_page_that_fails_stays_as_it_was(reproduce, stand_ins, tmp_path):
    (tmp_path / "data" / "binary" / "pcmac.libsvm.gz").write_bytes(gzip.compress(b"1 1:x\n"))
    with pytest.raises(SystemExit, match="the command of pcmac failed"):
        reproduce("zhao2014", "--sets", "pcmac", "--grid", 3, page="pages")
    assert not (tmp_path / "pages").exists()
    assert (tmp_path / "out" / "zhao2014" / "draft" / "zhao2014.md").is_file()


def test_the_index_counts_claims(reproduce, stand_ins, tmp_path):
    reproduce("zhao2014", "--sets", "pcmac", "--grid", 3)
    claims = record(tmp_path, "zhao2014")["claims"]
    code, _ = reproduce("index", "--page", tmp_path / "out" / "zhao2014")
    text = (tmp_path / "out" / "zhao2014" / "README.md").read_text()
    good = sum(claim["verdict"] == "reproduced" for claim in claims)
    assert code == 0 and f"{good} of {len(claims)} judged claims are reproduced." in text
    assert "| Tables 2-4: seven configurations |" in text


@pytest.mark.parametrize(
    ("judge", "published", "ours", "verdict"),
    [
        ("of_ratio", 4.0, 3.0, "reproduced"), ("of_ratio", 4.0, 40.0, "reproduced"),
        ("of_ratio", 4.0, 1.5, "direction"), ("of_ratio", 4.0, 0.9, "not"), ("of_ratio", 0.9, 3.0, "not"),
        ("of_ratio", 4.0, None, "open"), ("of_share", 0.5, 0.54, "reproduced"), ("of_share", 0.5, 0.3, "direction"),
        ("of_share", 0.5, 0.2, "not"), ("of_at_least", 0.8, 0.95, "reproduced"), ("of_order", None, False, "not"),
    ],
)  # fmt: skip
def test_verdicts(judge, published, ours, verdict, reproduce):
    verdicts = importlib.import_module("verdicts")
    given = (ours,) if judge == "of_order" else (published, ours)
    assert getattr(verdicts, judge)(*given) == verdict


def test_a_table_is_of_the_verdict_of_three_quarters(reproduce):
    together = importlib.import_module("verdicts").together
    assert together(["reproduced"] * 3 + ["not", "open"]) == "reproduced"
    assert together(["reproduced", "not"]) == "direction" and together(["not"]) == "not" and together([]) == "open"


@pytest.mark.parametrize("build", ["0123abc", "0123abc with changes"])
def test_a_page_that_was_stopped_goes_on_where_it_was(reproduce, stand_ins, tmp_path, monkeypatch, build):
    study = importlib.import_module("study")
    monkeypatch.setattr(study, "build", lambda: build)
    commands, plain = [], study.run
    monkeypatch.setattr(study, "run", lambda words: commands.append(words[0]) or plain(words))
    options = "wang2014", "--sets", "cadata", "--table", 3, "--grid", 5, "--sweeps", 200
    monkeypatch.setattr(study.Study, "_finish", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        reproduce(*options)
    monkeypatch.undo()
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(study, "build", lambda: build)
    first, commands = commands, []
    monkeypatch.setattr(study, "run", lambda words: commands.append(words[0]) or plain(words))
    code, page = reproduce(*options)
    assert code == 0 and first and commands == ([] if build == "0123abc" else first)
    assert any(line.startswith("cadata: screenpath compare-rules lad") for line in page)
