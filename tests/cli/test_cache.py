"""The cache command, on a folder of its own."""

import numpy as np
import pytest

from screenpath.kernels import compilation
from tests.cli.conftest import libsvm_text, screenpath


def test_warm_names_the_folder(call, monkeypatch):
    monkeypatch.setattr("screenpath.kernels.compilation.ensure_compiled", lambda *names: [("cd", 1.25)])
    result = call("cache", "warm")
    assert result.code == 0 and "cd " in result.err and "1.25 s" in result.err and "kept in" in result.err


@pytest.mark.parametrize("compiles", [True, False])
def test_helpers_start_with_the_first_compilation_and_are_ended(call, monkeypatch, compiles):
    seen = []

    def compiled(*names):
        if compiles:
            compilation._recorder.announce()
        return [(name, 0.5) for name in names]

    monkeypatch.setattr(compilation, "ensure_compiled", compiled)
    monkeypatch.setattr(compilation, "start_helpers", lambda names: seen.append(names))
    monkeypatch.setattr(compilation, "stop_helpers", lambda: seen.append("end"))
    assert call("cache", "warm", "cd", "parse").code == 0
    assert seen == ([("cd", "parse"), "end"] if compiles else ["end"])
    assert compilation._recorder.announce is None


@pytest.mark.wide_only  # it compiles what two models need, in a store of its own
@pytest.mark.parametrize("model", [("sparse-svm", "--betas", 3, "--alphas", 6), ("l1svm", "--grid", 8)])
def test_who_compiles_has_the_numbers_of_those_who_load(tmp_path, monkeypatch, model):
    """A function that stands in several kernels is optimised in each of them: which one is called must not show."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % (3 if model[0] == "sparse-svm" else 2)
    X = np.round(rng.normal(size=(120, 6)) + 1.5 * np.eye(6)[y], 6)
    (tmp_path / "data").write_text(libsvm_text(X, y + 1.0))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    found = []
    for name in ("cold", "warm"):
        done = screenpath(*model, tmp_path / "data", "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert ("compiling the numerical kernels" in done.stderr) == (name == "cold")
        found.append((tmp_path / name / "coefficients.csv").read_bytes())
    assert found[0] == found[1]
