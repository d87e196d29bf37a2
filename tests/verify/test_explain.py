"""``verify --explain --step K``: the numbers of a step against exact fractions, and words for what does not hold."""

import re

import pytest

from screenpath import verify_certificate
from screenpath.verify.explain import explained
from tests.certificates.compare import exact
from tests.certificates.test_corpus import HERE, VALID, data_of
from tests.cli.conftest import call  # noqa: F401

NUMBER = r" +(-?[0-9.]+(?:e[-+][0-9]+)?)"


def read(lines, text):
    """Return the number behind a text; None where no line has the text."""
    found = [re.search(re.escape(text) + NUMBER, line) for line in lines]
    return next((float(one[1]) for one in found if one), None)


@pytest.mark.parametrize("folder", VALID, ids=[folder.name for folder in VALID])
def test_the_numbers_are_those_of_exact_fractions(folder, monkeypatch):
    monkeypatch.chdir(folder)
    found = verify_certificate(folder, data_of(folder))
    _, _, steps, _ = exact.certified((folder / "certificate.bin").read_bytes(), data_of(folder))
    for k, step in steps.items():
        head, where, losses, *lines = explained(found, k)
        assert where.startswith("where ") and "t_k = " in where and " loss_k = the largest theta_k t_k" in losses
        lines.insert(0, head)
        P, gap = float(exact.ends(step.P)[1]), float(min(exact.ends(step.gap(t))[1] for t in step.completed()))
        primal = float(re.search("loss_k" + NUMBER, lines[1])[1])
        own, losses = (float(re.search(NUMBER + "$", line)[1]) for line in lines[2:4])
        assert primal == pytest.approx(P, rel=1e-9) and own + losses == pytest.approx(P, rel=1e-9)
        assert read(lines, "G = P - D, at most") >= gap * (1.0 - 1e-11) - 1e-15 * abs(P)
        assert read(lines, "- h(u)") <= P - gap + 1e-11 * abs(P)
        assert any("the step holds" in line for line in lines)
        terms = [read(lines, text) for text in ("tangents of theta", "theta makes")]
        if None not in terms:
            assert sum(terms) == pytest.approx(read(lines, "G = P - D, at most"), rel=1e-6, abs=1e-13 * abs(P))


def test_what_does_not_hold_is_said(call):  # noqa: F811
    folder = HERE / "invalid" / "step-another-tolerance"
    done = call("verify", folder, data_of(folder), "--explain", "--step", 1)
    assert done.code == 1 and re.search(r"verdict +G >  tol P: .*the relative gap is not proven", done.out)


def test_steps_that_claim_nothing_or_are_not_there(call):  # noqa: F811
    folder = HERE / "valid" / "svm-stopped"
    found = verify_certificate(folder, data_of(folder))
    assert explained(found, found.unclaimed[0])[0].endswith("it claims nothing")
    done = call("verify", folder, data_of(folder), "--explain", "--step", 999)
    assert done.code == 2 and not done.out
    assert done.err.startswith("error: there is no step 999\n  the path has the steps 0 to ")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--explain",), "add --step K"), (("--step", 0), "add --explain"),
        (("--explain", "--step", 0, "--format", "json"), "leave out --format"),
    ],
)  # fmt: skip
def test_one_step_as_text(words, hint, call):  # noqa: F811
    done = call("verify", "run", *words)
    assert done.code == 2 and f"--explain prints the inequality of one step as text\n  {hint}\n" in done.err
