"""One step of a run as an ONNX model: all arithmetic in float64, scaling and kernel included."""

from __future__ import annotations

from typing import Any

import numpy as np

from screenpath import __version__
from screenpath.data.words.labels import are_texts, label_text
from screenpath.data.words.tables import dump_json
from screenpath.errors import ResourceError
from screenpath.export.export import description
from screenpath.inputs.run_data import Support, support_of
from screenpath.store.open import Run

OPSET, IR = 17, 8  # of 2022: every runtime since then reads them


class Graph:
    """A model under construction: nodes and constants with consecutive names."""

    def __init__(self, onnx):
        self.helper, self.numpy, self.types = onnx.helper, onnx.numpy_helper, onnx.TensorProto
        self.nodes: list = []
        self.constants: list = []

    def constant(self, value, dtype: Any = np.float64) -> str:
        """Add an array and return its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(self.numpy.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def add(self, operator: str, *inputs: str, out: str | None = None, **attributes) -> str:
        """Add a node and return the name of its output."""
        name = out or f"v{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(operator, list(inputs), [name], **attributes))
        return name


def onnx_bytes(run: Run, step: dict, training: str | None = None) -> bytes:
    """Return a model that maps ``X`` (float64, rows in the units of the data) to the decisions of ``predict``.

    Outputs are ``label`` (whole numbers, or texts) and ``decision`` for a classifier, ``value`` for a regression.
    Parameters as of :func:`screenpath.export.export.exported`.
    """
    try:
        import onnx
    except ImportError:
        raise ResourceError(
            "this needs the package onnx, which is not installed", "pip install 'screenpath[onnx]'"
        ) from None
    g, double = Graph(onnx), onnx.TensorProto.DOUBLE
    rows = "X"
    if run.numbers is not None:
        rows = g.add("Gather", rows, g.constant(run.numbers - 1, np.int64), axis=1)
    if run.fill is not None:
        rows = g.add("Where", g.add("IsNaN", rows), g.constant(run.fill), rows)
    final = "value" if run.labels is None else "decision"
    if run.kernel:
        _kernel(g, rows, support_of(run, step, training), final)
    else:
        _linear(g, rows, *run.deciding(step), run.record["preparation"].get("scaling") == "l2", final, run.classes)
    shape: list = ["rows", len(run.classes)] if run.classes else ["rows"]
    outputs = [onnx.helper.make_tensor_value_info(final, double, shape)]
    if run.labels is not None:
        outputs.insert(0, onnx.helper.make_tensor_value_info("label", _labels(g, run), ["rows"]))
    given = onnx.helper.make_tensor_value_info("X", double, ["rows", run.n_features])
    graph = onnx.helper.make_graph(g.nodes, run.model, [given], outputs, g.constants)
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR, producer_name="screenpath",
        producer_version=__version__, doc_string=run.describe(step),
    )  # fmt: skip
    onnx.helper.set_model_props(model, {"description": dump_json(description(run, step))})
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _normalised(g: Graph, rows: str) -> str:
    axes: dict[str, Any] = {"axes": [1], "keepdims": 1}
    norms = g.add("Sqrt", g.add("ReduceSumSquare", rows, **axes))
    zero = g.add("Cast", g.add("Equal", norms, g.constant(0.0)), to=g.types.DOUBLE)
    return g.add("Div", rows, g.add("Add", norms, zero))


def _linear(g: Graph, rows: str, weights, intercepts, l2: bool, final: str, classes) -> None:
    rows = _normalised(g, rows) if l2 else rows
    if classes:
        g.add("Add", g.add("MatMul", rows, g.constant(weights.T)), g.constant(intercepts), out=final)
    else:
        g.add("Add", g.add("MatMul", rows, g.constant(weights[0])), g.constant(intercepts[0]), out=final)


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
    if function.name == "rbf":
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
