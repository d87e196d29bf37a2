"""The scripts of the papers' pages run on the toys and on small stand-ins, and their tables say what they have to."""

import gzip
import runpy
import sys

import pytest

from tests.conftest import ROOT

FOLDER = ROOT / "examples" / "papers"


@pytest.fixture
def page_of(tmp_path, monkeypatch, capsys):
    """Return a function that runs a page's script in this process and returns the lines of the page."""
    monkeypatch.syspath_prepend(FOLDER)

    def made(name, *options, page=None):
        where = ("--page", tmp_path / page) if page else ()
        words = [name, tmp_path / "data", tmp_path / "out", "--repeats", 1, *where, *options]
        monkeypatch.setattr(sys, "argv", [str(word) for word in words])
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
        folder = tmp_path / page if page else tmp_path / "out" / name
        return (folder / f"{name}.md").read_text().splitlines()

    return made


@pytest.fixture
def stand_ins(tmp_path):
    """Put small data where the scripts look for pcmac, breast_cancer and news20."""
    places = ("binary/pcmac", "wang_toy2"), ("binary/breast_cancer", "breast_cancer"), ("multiclass/news20", "digits")
    for place, sample in places:
        file = tmp_path / "data" / f"{place}.libsvm.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress((ROOT / "data_samples" / f"{sample}.libsvm").read_bytes()))


def cells(page, *start):
    """Return the cells of the first line of a table that starts so."""
    found = next(line for line in page if line.startswith("| " + " | ".join(start) + " |"))
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_wang2014(page_of, tmp_path):
    page = page_of("wang2014", "--sets", "toy1,wine", "--grid", 5, page="pages")
    found = cells(page, "toy1", "dvi")
    assert found[2] == "5 of 5" and float(found[3]) > 0.5 and found[-1].startswith("59.15 (0.02,")
    assert float(cells(page, "toy1", "none")[9]) == 1.0 == float(cells(page, "toy1", "none (cold)")[9])
    assert page[2].startswith("screenpath 0.") and ", commit " in page[2]
    command = "compare-rules svm OUT/wang-toy1.libsvm --intercept none --rules none,dvi,dvi+gap --grid 5 --repeats 1"
    assert f"toy1: screenpath {command}" in page
    assert (tmp_path / "pages" / "wang2014-fig1.svg").stat().st_size > 1000
    assert not any(line.startswith("| wine") for line in page)  # the data is not there


def test_ogawa2013(page_of):
    page = page_of("ogawa2013", "--sets", "toy", "--grid", 6)
    assert cells(page, "ssnsv")[1:4] == ["527", "2", "600"]
    heuristic, rule = (float(cells(page, "toy", name, "cold")[4]) for name in ("heuristic", "essnsv"))
    assert heuristic > rule > 0.0
    assert float(cells(page, "toy", "heuristic", "cold")[8]) > 0.0 == float(cells(page, "toy", "none", "cold")[8])
    proven, known = (float(cells(page, "toy", "essnsv", form)[3]) for form in ("C", "C, loss known"))
    assert 0.0 < proven <= known  # no bound on a loss is better than the loss


def test_ogawa2014_linear(page_of, stand_ins):
    few = ("--eps", 1e-1, "--tol", 1e-3, "--cmax", 1, "--cd_cmax", 1, "--cd_eps", 1e-1, "--sweeps", 200, "--grid", 4)
    page = page_of("ogawa2014_linear", "--sets", "toy", *few)
    assert [int(n) for n in cells(page, "it")[1:]] == [204, 248, 604, 750]
    _, _, bt1, bt2, it = cells(page, "toy", "0.9")
    assert float(it) >= float(bt1) and float(it) >= float(bt2)
    labels = {cells(page, "toy", name)[2] for name in ("none", "bt1", "it", "it+shrinking")}
    assert len(labels) == 1  # all walk the same points
    assert float(cells(page, "toy", "0.95")[2]) > 0.9


def test_ogawa2014_kernel(page_of, stand_ins):
    few = ("--eps", 1e-2, "--tol", 1e-4, "--cmax", 50, "--gammas", "10", "--ends", "10", "--grid", 4)
    page = page_of("ogawa2014_kernel", "--sets", "bcd", *few)
    lines = [line for line in page if line.startswith("| bcd, 10/d: to C = ")]
    assert len(lines) == 12 and sum("L is empty" in line for line in lines) == 6
    assert any(line.startswith("Shrink over Shrink+IT, until no dual variable is at C:") for line in page)
    _, _, bt1, bt2, it = cells(page, "bcd, 1/d", "0.9")
    assert float(it) >= float(bt1) and float(it) >= float(bt2)


def test_hong2019(page_of, stand_ins, tmp_path):
    few = ("--betas", 2, "--alphas", 4, "--part", 1, "--smoothing", 0.9, "--references", 3)
    page = page_of("hong2019", "--sets", "pcmac,rcv1,news20,news20-1", *few)
    assert sum(line.startswith("| pcmac | real-sim | 8 |") for line in page) == 10  # five rules, warm and cold
    assert float(cells(page, "pcmac", "real-sim", "8", "sifs", "warm")[10]) > 0.0
    assert float(cells(page, "pcmac, plain SDCA", "real-sim", "8", "sifs", "cold")[10]) > 0.0
    assert cells(page, "news20, part", "news20", "4", "sifs")[11] != ""  # a part of the grid has a speed-up
    assert cells(page, "news20", "news20", "8", "sifs")[11] == ""  # the whole grid is walked with SIFS alone
    assert "Left out, since the data are not at hand: rcv1." in page
    assert sum(line.count("(") for line in page if line.startswith("| 0.")) == 16  # Table 4
    drawn = [line[2:].split(":")[0] for line in page if line.startswith("![")]
    assert drawn == ["Fig. 3", "Fig. 4", "Fig. 7", "Fig. 11"]
    assert len(list((tmp_path / "out" / "hong2019").glob("hong2019-*.svg"))) == 4


def test_zhao2014(page_of, stand_ins):
    page = page_of("zhao2014", "--sets", "pcmac,chowdary", "--grid", 4)
    assert [cells(page, "pcmac", "real-sim", name)[3] for name in ("org", "warm+scr", "default")] == ["4 of 4"] * 3
    assert cells(page, "pcmac", "real-sim", "warm+scr")[-1] == "4.8"
    assert not any(line.startswith(("| chowdary", "| moved")) for line in page)


def test_zhao2014_moves_a_set_away_from_zero(page_of, stand_ins, tmp_path):
    (tmp_path / "data" / "binary" / "breast_cancer.libsvm.gz").rename(tmp_path / "data/binary/chowdary.libsvm.gz")
    page = page_of("zhao2014", "--sets", "chowdary", "--grid", 2, "--limit", 0.5)
    assert cells(page, "moved", "", "default")[3] == "2 of 2"
    first = (tmp_path / "out" / "zhao2014" / "chowdary-moved.libsvm").read_text().split()
    assert first[1].startswith("1:10000") and any(line.startswith("- **Centring**") for line in page)


def test_a_page_that_fails_stays_as_it_was(page_of, stand_ins, tmp_path, monkeypatch):
    page_of("zhao2014", "--sets", "pcmac", "--grid", 3, page="pages")
    before = {file.name: file.read_bytes() for file in (tmp_path / "pages").iterdir()}
    (tmp_path / "data" / "binary" / "pcmac.libsvm.gz").write_bytes(gzip.compress(b"1 1:x\n"))
    with pytest.raises(SystemExit, match="the command of pcmac failed"):
        page_of("zhao2014", "--sets", "pcmac", "--grid", 3, page="pages")
    assert {file.name: file.read_bytes() for file in (tmp_path / "pages").iterdir()} == before
    assert (tmp_path / "out" / "zhao2014" / "draft" / "zhao2014.md").is_file()
