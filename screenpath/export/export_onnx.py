"""One step of a run as an ONNX model: all arithmetic in float64, scaling and kernel included."""

from __future__ import annotations

from typing import Any

import numpy as np

from screenpath import __version__
from screenpath.data.files.cells import NA
from screenpath.data.files.dataset import Form
from screenpath.data.words.labels import are_texts, label_text
from screenpath.data.words.tables import dump_json
from screenpath.errors import UsageError, needed
from screenpath.export.export import description
from screenpath.inputs.run_data import Support, support_of
from screenpath.store.open import Run

OPSET, IR = 17, 8  # of 2022: every runtime since then reads them
ML, OPSET_ML = "ai.onnx.ml", 3  # operators on texts


class Graph:
    """A model under construction: nodes and constants with consecutive names, which no column has."""

    def __init__(self, onnx):
        self.helper, self.numpy, self.types = onnx.helper, onnx.numpy_helper, onnx.TensorProto
        self.nodes: list = []
        self.constants: list = []

    def constant(self, value, dtype: Any = np.float64) -> str:
        """Add an array and return its name."""
        name = f"/c{len(self.constants)}"
        self.constants.append(self.numpy.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def add(self, operator: str, *inputs: str, out: str | None = None, **attributes) -> str:
        """Add a node and return the name of its output."""
        name = out or f"/v{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(operator, list(inputs), [name], **attributes))
        return name


def onnx_bytes(run: Run, step: dict, training: str | tuple | None = None) -> bytes:
    """Return a model that maps ``X`` (float64, rows in the units of the data) to the decisions of ``predict``.

    For a table with encoded columns, or with features that tell where a value is missing, it has an input for each
    column, of shape (rows, 1) and by its name: texts, or float64. A missing number is nan. Outputs are ``label`` (whole
    numbers, or texts) and ``decision`` for a classifier, ``value`` for a regression.
    Parameters as of :func:`screenpath.export.export.exported`.
    """
    with needed("this needs the package onnx, which is not installed", "pip install 'screenpath[onnx]'"):
        import onnx
    g, double = Graph(onnx), onnx.TensorProto.DOUBLE
    rows, inputs = _columns(g, run) if run.form is not None and not run.form.plain else ("X", {"X": double})
    if "X" in inputs and run.form is not None:
        rows = _blanked(g, rows, run.form)
    if run.numbers is not None:
        rows = g.add("Gather", rows, g.constant(run.numbers - 1, np.int64), axis=1)
    if run.fill is not None:
        rows = g.add("Where", g.add("IsNaN", rows), g.constant(run.fill), rows)
    final = "value" if run.labels is None else "decision"
    if run.kernel:
        _kernel(g, rows, support_of(run, step, training), final)
    else:
        rows = _normalised(g, rows) if run.record["preparation"].get("scaling") == "l2" else rows
        weights, intercepts = run.deciding(step) if run.classes else (found[0] for found in run.deciding(step))
        g.add("Add", g.add("MatMul", rows, g.constant(weights.T)), g.constant(intercepts), out=final)
    shape: list = ["rows", len(run.classes)] if run.classes else ["rows"]
    outputs = [onnx.helper.make_tensor_value_info(final, double, shape)]
    if run.labels is not None:
        outputs.insert(0, onnx.helper.make_tensor_value_info("label", _labels(g, run), ["rows"]))
    width = 1 if inputs != {"X": double} else run.n_features
    given = [onnx.helper.make_tensor_value_info(name, kind, ["rows", width]) for name, kind in inputs.items()]
    graph = onnx.helper.make_graph(g.nodes, run.model, given, outputs, g.constants)
    opsets = [("", OPSET), *([(ML, OPSET_ML)] if any(node.domain == ML for node in g.nodes) else [])]
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid(*one) for one in opsets], ir_version=IR,
        producer_name="screenpath", producer_version=__version__, doc_string=run.describe(step),
    )  # fmt: skip
    onnx.helper.set_model_props(model, {"description": dump_json(description(run, step))})
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _columns(g: Graph, run: Run) -> tuple[str, dict[str, int]]:
    """Add the features of a table; return them as rows, and the type of each column's input by its name."""
    form, parts, inputs = run.form, [], {}
    assert form is not None
    twice = [name for name in form.columns if name in ("label", "decision", "value") or name.startswith("/")]
    if twice:
        raise UsageError(f"the model has an output or a part called '{twice[0]}', as a column is", "rename the column")
    for name in form.columns:
        texts = form.one_hot.get(name)
        inputs[name] = g.types.DOUBLE if texts is None else g.types.STRING
        column = name if texts is not None else _blanked(g, name, form)
        parts += [column] if texts is None else [_one_hot(g, name, texts)] if texts else []
        if name in (form.indicated or ()):
            told = None if texts is None else _one_hot(g, name, sorted({*NA, *form.cells.na}))
            gaps = g.add("IsNaN", column) if told is None else g.add("ReduceMax", told, axes=[1], keepdims=1)
            parts.append(g.add("Cast", gaps, to=g.types.DOUBLE))
    return g.add("Concat", *parts, axis=1), inputs


def _blanked(g: Graph, rows: str, form: Form) -> str:
    """Return rows with nan for the numbers that stand for a missing value."""
    for code in form.cells.codes:
        rows = g.add("Where", g.add("Equal", rows, g.constant(code)), g.constant(np.nan), rows)
    return rows


def _one_hot(g: Graph, column: str, texts) -> str:
    """Return a column of 0 and 1 for each text; a row of another text has 0 in all."""
    found = g.add("OneHotEncoder", column, domain=ML, cats_strings=list(texts), zeros=1)
    return g.add("Cast", g.add("Squeeze", found, g.constant([1], np.int64)), to=g.types.DOUBLE)


def _normalised(g: Graph, rows: str) -> str:
    axes: dict[str, Any] = {"axes": [1], "keepdims": 1}
    norms = g.add("Sqrt", g.add("ReduceSumSquare", rows, **axes))
    zero = g.add("Cast", g.add("Equal", norms, g.constant(0.0)), to=g.types.DOUBLE)
    return g.add("Div", rows, g.add("Add", norms, zero))


def _kernel(g: Graph, rows: str, support: Support, final: str) -> None:
    """Add ``sum_i coefficients_i K(s_i, x) + b``."""
    p, function, vectors = support.preparation, support.function, support.rows
    if p.kind == "l2":
        rows = _normalised(g, rows)
    if p.shift is not None:
        rows = g.add("Sub", rows, g.constant(p.shift))
    if p.scale is not None:
        rows = g.add("Div", rows, g.constant(p.scale))
    products = g.add("MatMul", rows, g.constant(vectors.T))
    if function.name == "laplacian":
        apart = g.add("Sub", g.add("Unsqueeze", rows, g.constant([1], np.int64)), g.constant(vectors))
        distances = g.add("ReduceL1", apart, axes=[2], keepdims=0)
        products = g.add("Exp", g.add("Mul", distances, g.constant(-function.gamma)))
    elif function.name == "rbf":
        squares = g.add("ReduceSumSquare", rows, axes=[1], keepdims=1)
        sums = g.add("Add", squares, g.constant(np.einsum("ij,ij->i", vectors, vectors)))
        apart = g.add("Sub", sums, g.add("Mul", products, g.constant(2.0)))
        products = g.add("Exp", g.add("Mul", apart, g.constant(-function.gamma)))
    elif function.name == "poly":
        inner = g.add("Add", g.add("Mul", products, g.constant(function.gamma)), g.constant(function.coef0))
        products = g.add("Pow", inner, g.constant(float(function.degree)))
    values = g.add("Add", products, g.constant(function.constant))
    forms = g.add("MatMul", values, g.constant(support.coefficients))
    g.add("Add", forms, g.constant(support.intercept), out=final)


def _labels(g: Graph, run: Run) -> int:
    labels = run.sides
    if are_texts(labels):
        names, kind = g.constant([label_text(label) for label in labels], np.object_), g.types.STRING
    elif all(float(label).is_integer() for label in labels):
        names, kind = g.constant(labels, np.int64), g.types.INT64
    else:
        names, kind = g.constant(labels), g.types.DOUBLE
    if run.classes:
        codes = g.add("ArgMax", "decision", axis=1, keepdims=0)
    else:
        codes = g.add("Cast", g.add("Greater", "decision", g.constant(0.0)), to=g.types.INT64)
    g.add("Gather", names, codes, out="label")
    return kind
