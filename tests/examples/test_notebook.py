"""The notebook was executed, and its code still runs."""

import json
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("pandas")
NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "path.ipynb"


@pytest.fixture
def fresh():
    """Matplotlib as a process that has just begun has it: the papers' pages set a style of their own."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield


def test_the_notebook(fresh):
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    names: dict = {}
    for cell in cells:
        assert cell["execution_count"] and cell["outputs"] and all(o["output_type"] != "error" for o in cell["outputs"])
        exec("".join(cell["source"]), names)
    shown = "".join(cells[1]["outputs"][0]["data"]["text/html"])
    assert "<td>100 of 100 steps</td>" in shown and shown == names["path"]._repr_html_()
    assert names["path"].certified and set(names["model"].classes_) == {"benign", "malignant"}
    assert names["model"].certificate_["difference"] < 0.02
