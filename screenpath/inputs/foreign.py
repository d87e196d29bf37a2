"""Models made elsewhere: model files of LIBLINEAR and LIBSVM, ONNX, JSON, CSV, and fitted estimators.

Estimators are told by their names and parameters; no library is imported for them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from screenpath.catalogue.scores import pairs_of
from screenpath.data.words.labels import NamedLabel, label_text
from screenpath.data.words.numerals import is_number
from screenpath.errors import DataError, UsageError, needed
from screenpath.numbers import sparse as sp

# Penalties of a squared hinge whose losses are multiplied by C, with the objective.
L2, L1 = "l2", "l1"
SQUARED = {
    L2: "min 1/2 ||w||^2 + C sum_i s_i max(0, 1 - y_i x_i.w)^2",
    L1: "min ||w||_1 + C sum_i s_i max(0, 1 - y_i x_i.w)^2",
}
# By the name that LIBLINEAR or LIBSVM has for a problem: models that it may be, and the penalty of the squared hinge.
SVC, SVR, FREE_SVC, FREE_SVR = "L2R_L1LOSS_SVC_DUAL", "L2R_L1LOSS_SVR_DUAL", "c_svc", "epsilon_svr"
KINDS: dict[str, tuple[tuple[str, ...], str | None]] = {
    SVC: (("svm",), None),
    SVR: (("svr", "lad", "quantile"), None),
    "L2R_L2LOSS_SVC": (("sparse-svm",), L2),
    "L2R_L2LOSS_SVC_DUAL": (("sparse-svm",), L2),
    "L1R_L2LOSS_SVC": (("sparse-svm",), L1),
    FREE_SVC: (("svm",), None),
    FREE_SVR: (("svr", "lad", "quantile"), None),
}
NAMED = "lad", "quantile", "svr", "sparse-svm"  # models besides svm whose problem may be named
OTHERS = "HuberRegressor", "LogisticRegression", "Ridge", "RidgeClassifier", "Lasso", "ElasticNet", "LinearRegression"
KERNEL = "kernel", "gamma", "degree", "coef0"
LIBSVM_KERNELS = {"rbf": "rbf", "polynomial": "poly", "linear": "linear"}
# What a file that is no model may raise.
UNREADABLE = (
    ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError, csv.Error,
)  # fmt: skip
AGAIN = "write the model file again"
PRODUCTS = "MatMul", "Gemm"  # of ONNX
NO_LINEAR = "is no linear model of the rows as they are"
FOR_KERNELS = "certify one without scaling; behind a kernel LIBSVM's model file, as `to=libsvm` of export writes it"
COLUMNS = "write lines of feature,value below such a header: the number from 1 (0 is the intercept) or the name"


@dataclass(frozen=True)
class Foreign:
    """A model made elsewhere."""

    name: str  # of its file or class
    weights: np.ndarray  # (k, m), in the units of the data; a row for each class where there are more than two
    intercepts: np.ndarray  # (k,)
    labels: tuple[str, ...] = ()  # of two classes that of positive values first; of more that of each row; maybe empty
    kind: str = ""  # key of KINDS; empty where the problem is not told
    told: dict[str, Any] = field(default_factory=dict)  # options of the model that it tells
    features: Sequence | None = None  # numbers from 1, or names, of the m weights; None: 1 to m
    # of a kernel model: numbers of rows from 0, or support vectors, csr_array of shape (m, d); and their y_i alpha_i
    duals: tuple[Any, np.ndarray] | None = None
    pairs: tuple[Foreign, ...] = ()  # of more than two labels, as LIBSVM has them: a model for each pair

    def row(self, labels: dict | None) -> tuple[np.ndarray, float, float]:
        """Return weights and intercept for the problem with these labels (None: a regression), and their sign."""
        names = names_of((labels or {}).values())
        if len(self.intercepts) == 1:
            if self.labels and names and names[0] not in self.labels:
                raise self.of_other_labels(names)
            k, sign = 0, -1.0 if names and self.labels[1:] == (names[0],) else 1.0
        elif names and self.labels and not {*names} & {*self.labels}:
            raise self.of_other_labels(names)
        elif not names or names[0] not in self.labels:
            why = f"{self.name} has weights for each of {len(self.intercepts)} labels"
            common = [one for one in self.labels if one in names]
            raise UsageError(why, f"choose one against the rest: `positive={(*common, *self.labels, 'LABEL')[0]}`")
        else:
            k, sign = self.labels.index(names[0]), 1.0
        if not (np.all(np.isfinite(self.weights[k])) and np.isfinite(self.intercepts[k])):
            raise DataError(f"{self.name} has weights that are not finite", "fit the model again, on scaled data")
        return sign * self.weights[k], sign * float(self.intercepts[k]), sign

    def of_other_labels(self, names: Sequence[str]) -> DataError:
        what = f"{self.name} has the labels {', '.join(self.labels)}, the data {', '.join(names)}"
        hint = "name the data it was fitted to, or write the labels alike"
        return DataError(what, f"{hint}: a file of LIBLINEAR or LIBSVM has its own in the line 'label'")

    def spread(self, weights: np.ndarray, width: int, names: Sequence[str] | None) -> np.ndarray:
        """Return weights as an array of all ``width`` features of the data."""
        numbers = {name: j for j, name in enumerate(names or (), 1)}
        listed = range(1, weights.size + 1) if self.features is None else self.features
        found = (numbers.get(one, 0) if isinstance(one, str) else max(0, min(one, width + 1)) for one in listed)
        places = np.fromiter(found, np.int64) - 1
        beyond = (places < 0) | (places >= width)
        if np.any(weights[beyond]) or np.unique(places[~beyond]).size < np.count_nonzero(~beyond):
            raise DataError(f"{self.name} has a weight of a feature that the data lack, or two of one feature", COLUMNS)
        full = np.zeros(width)
        full[places[~beyond]] = weights[~beyond]
        return full


def names_of(labels) -> tuple[str, ...]:
    """Return labels as texts, numbers all in one spelling."""
    texts = [label_text(one if isinstance(one, str | NamedLabel) else float(one)) for one in labels]
    return tuple(label_text(float(text)) if is_number(text) else text for text in texts)


def problems_of(given: Foreign, model: str | None) -> tuple[str, str | None]:
    """Return the model whose problem a foreign one solves, by itself or ``model``, and its squared hinge's penalty."""
    models, penalty = KINDS.get(given.kind, ((), None))
    if model is None and not models:
        hint = f"name it with `c` and its intercept: `model=svm`, {', '.join(NAMED)}; others are not covered"
        raise UsageError(f"{given.name} does not tell its problem", hint)
    if models and model is not None and model not in models:
        raise UsageError(f"{given.name} is of the kind {given.kind}, not of {model}", f"use {' or '.join(models)}")
    return model or ("quantile" if "tau" in given.told else models[0]), penalty


def read_foreign(path: str) -> Foreign:
    """Read the model file of another program, by its content; DataError where the problem is none of screenpath's."""
    try:
        content = Path(path).read_bytes()
        if path.lower().endswith(".onnx"):
            return _onnx(path, content)
        text = content.decode("utf-8-sig")
        first = (text.split(maxsplit=1) or [""])[0]
        if first in ("solver_type", "svm_type"):
            return _lines(path, [line.strip() for line in text.splitlines()])
        return (_json if first[:1] == "{" else _csv)(path, text)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}", "name a model file") from None
    except UNREADABLE as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise DataError(f"{path} holds no model that can be read ({why})", COLUMNS) from None


def _lines(path: str, lines: list[str]) -> Foreign:
    at = lines.index("w" if "w" in lines else "SV")
    head = {name: rest for name, _, rest in (line.partition(" ") for line in lines[:at])}
    kind, labels = head.get("solver_type") or head["svm_type"], names_of(head.get("label", "").split())
    if kind not in KINDS:
        raise DataError(f"{path}: {kind} is no problem of screenpath's", f"these are: {', '.join(KINDS)}")
    cells = [line.split() for line in lines[at + 1 :]]
    if "solver_type" in head:
        weights, bias, width = np.array(cells, float).T, float(head["bias"]), int(head["nr_feature"])
        if weights.ndim != 2 or weights.shape[1] != width + (bias >= 0.0):
            raise ValueError("it has another number of weights than it says")
        intercepts = weights[:, -1] * bias if bias >= 0.0 else np.zeros(len(weights))
        return Foreign(path, weights[:, :width], intercepts, labels, kind, {"bias": bias} if bias > 0.0 else {})
    return _libsvm(path, head, labels, lines[: at + 1], cells)


def _libsvm(path: str, head: dict, labels: tuple, above: list[str], lines: list[list[str]]) -> Foreign:
    """Read a model file of LIBSVM; with a kernel, support vectors are found among the rows of the data later."""
    kernel, kind = LIBSVM_KERNELS.get(head["kernel_type"]), head["svm_type"]
    if kernel is None or kind not in (FREE_SVC, FREE_SVR):
        what = f"{kind} with the kernel {head['kernel_type']}"
        raise DataError(f"{path}: {what} is no problem of screenpath's", f"kernels are {', '.join(LIBSVM_KERNELS)}")
    told: dict[str, Any] = {"intercept": "free"}
    told |= {} if kernel == "linear" else {"kernel": kernel, "gamma": float(head["gamma"])}
    told |= {"degree": int(head["degree"]), "coef0": float(head["coef0"])} if kernel == "poly" else {}
    count = int(head["nr_class"])
    several = {"label": count, "nr_sv": count} if count > 2 else {}
    for name, size in {**several, "rho": count * (count - 1) // 2}.items():
        found = head.get(name, "").split()
        strange = [one for one in found if not (is_number(one) and isfinite(float(one)))]
        if strange or len(found) != size:
            at = next((f"line {k}: " for k, line in enumerate(above, 1) if line.partition(" ")[0] == name), "")
            what = f"has {strange[0]!r}, no number" if strange else f"has {len(found)} entries, not {size}"
            raise DataError(f"{path}: {at}{name} {what}", AGAIN)
    coefficients, vectors = _support(path, len(above) + 1, lines, count - 1)
    whole = Foreign(path, np.zeros((1, 0)), -np.array([float(one) for one in head["rho"].split()]), labels, kind, told)
    if count == 2:
        return _summed(replace(whole, duals=(vectors, coefficients[:, 0])))
    sizes = [int(size) for size in head["nr_sv"].split()]
    if sum(sizes) != len(lines):
        raise DataError(f"{path}: nr_sv counts {sum(sizes)} support vectors, there are {len(lines)}", AGAIN)
    return _of_pairs(whole, np.repeat(range(count), sizes), coefficients, vectors)


def _support(path: str, first: int, lines: list[list[str]], width: int) -> tuple[np.ndarray, Any]:
    """Return coefficients, shape (m, width), and support vectors, shape (m, d), from lines of words from ``first`` on.
    """
    numbers: list[float] = []
    values: list[float] = []
    columns, ends = [], [0]
    for k, cells in enumerate(lines, first):
        for p, cell in enumerate(cells):
            column, _, value = ("1", ":", cell) if p < width else cell.partition(":")
            if not (is_number(value) and column.isdigit() and int(column) > 0 and isfinite(float(value))):
                what = "a coefficient" if p < width else "a feature from 1 and its value"
                raise DataError(f"{path}: line {k}: {cell!r} is not {what}", AGAIN)
            (numbers if p < width else values).append(float(value))
            columns += [int(column) - 1] if p >= width else []
        if len(cells) < width:
            raise DataError(f"{path}: line {k} has {len(cells)} of {width} coefficients", AGAIN)
        ends.append(len(values))
    shape = len(lines), max(columns, default=-1) + 1
    vectors = sp.csr_array((np.array(values, float), np.array(columns, np.int64), ends), shape=shape)
    return np.array(numbers, float).reshape(len(lines), width), vectors


def _summed(given: Foreign) -> Foreign:
    """Return a model with the weights that the sum over support vectors is, where it has no kernel."""
    if given.duals is None or "kernel" in given.told:
        return given
    vectors, coefficients = given.duals
    features, at = np.unique(vectors.indices, return_inverse=True)
    terms = vectors.data * np.repeat(coefficients, np.diff(vectors.indptr))
    weights = np.bincount(at, terms, features.size)[None, :]
    return replace(given, weights=weights, features=(features + 1).tolist(), duals=None)


def _of_pairs(whole: Foreign, own: np.ndarray, coefficients: np.ndarray, vectors) -> Foreign:
    """Return a model with one of two labels for each pair, by the coefficients as LIBSVM has them.

    ``own``, shape (m,), are the numbers of the labels of support vectors, ``vectors`` as of ``Foreign.duals``;
    ``coefficients``, shape (m, labels - 1), are those against each other label: ``sv_coef``, transposed.
    """
    pairs = []
    for p, (a, b) in enumerate(pairs_of(len(whole.labels))):
        column = np.where(own == a, coefficients[:, b - 1], np.where(own == b, coefficients[:, a], 0.0))
        there, labels = np.flatnonzero(column), (whole.labels[a], whole.labels[b])
        duals = vectors[there], column[there]
        name, rho = f"{whole.name} ({' and '.join(labels)})", whole.intercepts[p : p + 1]
        pairs.append(_summed(replace(whole, name=name, intercepts=rho, labels=labels, duals=duals)))
    return replace(whole, pairs=tuple(pairs))


def _key(columns, values) -> tuple:
    """Return the entries of a row as LIBSVM writes them, which keeps 8 digits."""
    return tuple(f"{j}:{value:.8g}" for j, value in zip(columns.tolist(), values.tolist(), strict=True) if value != 0.0)


def places_of(name: str, vectors, rows, sides, wanted) -> np.ndarray:
    """Return which rows support vectors are, shape (m,): each a row of its own, equal to the digits that LIBSVM writes.

    ``vectors`` and ``rows`` are csr_array of shape (m, d) and (n, d); ``sides``, shape (n,), and ``wanted``, shape
    (m,), are signs, which must agree: where the data repeat a row with both labels, coefficients tell them apart. Rows
    of a regression have one sign: of a repeated one, coefficients belong to the first.
    """
    known: dict[tuple, list[int]] = {}
    for k in reversed(range(rows.shape[0])):
        part = slice(rows.indptr[k], rows.indptr[k + 1])
        known.setdefault((sides[k], _key(rows.indices[part], rows.data[part])), []).append(k)
    found = np.empty(vectors.shape[0], dtype=np.int64)
    for k in range(found.size):
        part = slice(vectors.indptr[k], vectors.indptr[k + 1])
        left = known.get((wanted[k], _key(vectors.indices[part], vectors.data[part])))
        if not left:
            hint = "name the data it was fitted to, as they were, scaled or not; compressed models cannot be certified"
            raise DataError(f"{name}: the support vector in line {k + 1} is no row of the data with its label", hint)
        found[k] = left.pop()
    return found


def _json(path: str, text: str) -> Foreign:
    """Read ``{"weights": [...], "intercept": b, "labels": [...]}``, or what ``screenpath export --to json`` writes."""
    found = json.loads(text)
    if "kernel" in found or found.get("rows") == "l2":
        raise DataError(f"{path} {NO_LINEAR}", FOR_KERNELS)
    blocks, labels = found["weights"], found.get("labels") or ()
    if isinstance(blocks[0], dict) and "pair" in blocks[0]:
        raise DataError(f"{path} has weights for each pair of labels", "certify LIBSVM's model of these pairs")
    if not isinstance(blocks[0], dict):
        blocks = [{"values": blocks, "features": range(1, len(blocks) + 1), "intercept": found.get("intercept", 0.0)}]
    elif len(blocks) > 1:
        labels = [block["label"] for block in blocks]
    labels = labels.values() if isinstance(labels, dict) else labels
    names = names_of(labels)
    weights = np.zeros((len(blocks), found.get("n_features", len(blocks[0]["values"]))))
    for row, block in zip(weights, blocks, strict=True):
        row[np.array(block["features"], np.int64) - 1] = block["values"]
    told = {"c": found["parameters"]["C"]} if "C" in found.get("parameters", {}) else {}
    intercepts = np.array([block["intercept"] for block in blocks], float)
    return Foreign(path, weights, intercepts, () if names[1:] == ("rest",) else names, told=told)


def _csv(path: str, text: str) -> Foreign:
    """Read lines ``feature,value`` below such a header; other columns do not count, and there is one step."""
    rows = list(csv.DictReader(text.splitlines()))
    if len({(row.get("step"), row.get("class")) for row in rows}) != 1:
        raise ValueError("it has weights of several steps or classes, or none")
    pairs = [(int(row["feature"]) if row["feature"].isdigit() else row["feature"], float(row["value"])) for row in rows]
    intercept = np.array([sum(value for feature, value in pairs if feature == 0)], float)
    features, values = zip(*[pair for pair in pairs if pair[0] != 0], strict=True)
    return Foreign(path, np.array([values]), intercept, features=features)


def _onnx(path: str, content: bytes) -> Foreign:
    """Read a graph whose rows go into a linear form as they are."""
    with needed("this needs the package onnx, which is not installed", "pip install onnx"):
        import onnx
    try:
        model = onnx.load_from_string(content)
    except Exception as error:  # that of protobuf, a package which only onnx knows
        raise ValueError(f"no ONNX: {type(error).__name__}") from None
    constants = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    rows, features = model.graph.input[0].name, None
    labels: list = []
    for node in model.graph.node:
        given = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        arrays = [constants[name] for name in node.input[1:] if name in constants]
        if rows not in node.input:
            continue
        if node.op_type == "Gather":
            rows, features = node.output[0], (arrays[0] + 1).tolist()
            continue
        if node.op_type in ("LinearClassifier", "LinearRegressor"):
            intercepts = np.array(given["intercepts"], float)
            weights = np.array(given["coefficients"], float).reshape(intercepts.size, -1)
            labels = given.get("classlabels_ints") or [one.decode() for one in given.get("classlabels_strings", ())]
            if len(labels) == 2:  # the first of two rows is the negative of the second, that of the second label
                weights, intercepts, labels = weights[-1:], intercepts[-1:], labels[::-1]
        elif node.op_type in PRODUCTS:
            if sum(one.op_type in PRODUCTS or rows in one.input for one in model.graph.node) > 1:
                break  # a kernel, or a layer: what becomes of the products is not linear in the rows
            weights = np.atleast_2d(arrays[0].T if not given.get("transB") else arrays[0]).astype(float)
            after = [one for one in model.graph.node if one.op_type == "Add" and node.output[0] in one.input]
            arrays += [constants[name] for one in after[:1] for name in one.input if name in constants]
            intercepts = np.resize(arrays[1], len(weights)).astype(float) if arrays[1:] else np.zeros(len(weights))
            about = [one.value for one in model.metadata_props if one.key == "description"]  # of screenpath's own
            said = (json.loads(about[0]).get("labels") if about else None) or {}
            labels = said.get("classes") or ([] if said.get("-1") == "rest" else list(said.values()))
        else:
            break
        return Foreign(path, weights, intercepts, names_of(labels), features=features)
    raise DataError(f"{path} {NO_LINEAR}", FOR_KERNELS)


# -- fitted estimators ------------------------------------------------------------------------------------------------


def _of_weights(pair: tuple) -> Foreign:
    """Return weights and intercept that stand alone."""
    try:
        weights, intercepts = (np.atleast_1d(np.asarray(one, float)) for one in pair)
    except (TypeError, ValueError):
        weights = intercepts = np.empty(0)
    weights = np.atleast_2d(weights)
    if weights.ndim > 2 or not weights.size or intercepts.shape != weights.shape[:1]:
        raise UsageError("a tuple is (weights, intercept): a number for each feature, and one", "such as (w, 0.0)")
    return Foreign("weights", weights, intercepts)


def of_estimator(model: Any) -> Foreign:
    """Return weights of a fitted estimator and what its parameters tell of its problem; UsageError if none of ours.

    A tuple has weights and intercept alone.
    """
    if isinstance(model, tuple):
        return _of_weights(model)
    name = type(model).__name__
    if name in OTHERS:
        raise UsageError(f"{name} is not covered", f"these are: svm, {', '.join(NAMED)}; see the guide, exact.md")
    known: dict = getattr(model, "get_params", dict)()
    labels = names_of(np.asarray(getattr(model, "classes_", ())).tolist())
    labels = labels[::-1] if len(labels) == 2 else labels
    kind, told = _problem(name, known)
    if kind and kind not in KINDS:
        why = ": it is not positive definite" if kind.endswith("sigmoid") else ""
        raise UsageError(f"{name} with {kind} solves a problem that screenpath has not{why}", "see the guide, exact.md")
    if known.get("class_weight") is not None:
        told["class_weight"] = known["class_weight"]
    several = len(labels) > 2 and kind == FREE_SVC
    if len(labels) > 2 and "class_weight" in told and not several:
        raise UsageError(f"{name} has weights of {len(labels)} labels, not one label against all", "fit two")
    intercepts = np.ravel(np.asarray(getattr(model, "intercept_", 0.0), float))
    if "kernel" in told:
        if not hasattr(model, "dual_coef_"):
            raise UsageError(f"{name} is not fitted", "call its method fit first")
        told |= {"gamma": float(model._gamma)} if "gamma" in told else {}  # gamma=scale has become a number
        whole, coefficients = Foreign(name, np.zeros((1, 0)), intercepts, labels, kind, told), _dense(model.dual_coef_)
        if several:
            own = np.repeat(np.arange(len(labels)), model.n_support_)
            return _of_pairs(whole, own, coefficients.T, model.support_)
        return replace(whole, duals=(model.support_, np.ravel(coefficients)))
    if not hasattr(model, "coef_"):
        raise UsageError(f"{name} has no weights", "pass a fitted linear model, or an SVC")
    weights = np.atleast_2d(np.asarray(_dense(model.coef_), float))
    whole = Foreign(name, weights, np.resize(intercepts, len(weights)), labels, kind, told)
    if not several:
        return whole
    rows = zip(pairs_of(list(labels)), weights, intercepts, strict=True)
    pairs = (replace(whole, name=f"{name} ({' and '.join(two)})", labels=two, weights=w[None, :], intercepts=b[None])
             for two, w, b in rows)  # fmt: skip
    return replace(whole, pairs=tuple(pairs))


def _dense(values):
    return values.toarray() if sp.issparse(values) else values


def _problem(name: str, known: dict) -> tuple[str, dict]:
    """Return what the parameters of an estimator tell: a key of ``KINDS``, or what is none; and options."""
    loss, told = known.get("loss"), {"c": known.get("C")}
    told |= {"epsilon": known["epsilon"]} if "epsilon" in known else {}
    if name in ("SVC", "SVR"):
        kind, kernel, kernels = FREE_SVC, known["kernel"], {"rbf": KERNEL[:2], "poly": KERNEL}
        kind = FREE_SVR if name == "SVR" else kind
        told |= {"intercept": "free", **{one: known[one] for one in kernels.get(kernel, ())}}
        return (kind if kernel in (*kernels, "linear") else f"the kernel {kernel}"), told
    if known.get("fit_intercept") and "intercept_scaling" in known:  # as LIBLINEAR has it; skglm fits no intercept
        told["bias"] = float(known["intercept_scaling"])
    if name == "LinearSVC":
        kinds = {"hinge l2": SVC, "squared_hinge l2": "L2R_L2LOSS_SVC", "squared_hinge l1": "L1R_L2LOSS_SVC"}
        said = f"{loss or 'hinge'} {known.get('penalty', L2)}"
        return kinds.get(said, said) if known.get("multi_class", "ovr") == "ovr" else known["multi_class"], told
    if name == "LinearSVR":
        return SVR if loss == "epsilon_insensitive" else f"the loss {loss}", told
    if name in ("plq_Ridge_Classifier", "plq_Ridge_Regressor"):
        loss = loss or {"name": "QR", "qt": 0.5}
        losses = {"svm": (SVC, ""), "hinge": (SVC, ""), "qr": (SVR, "qt"), "svr": (SVR, "epsilon")}
        kind, own = losses.get(loss["name"].lower(), (f"the loss {loss['name']}", ""))
        told |= {{"qt": "tau"}.get(own, own): loss[own]} if own else {}
        return "constraints" if known["constraint"] or known.get("A") is not None else kind, told
    return "a penalty of |w| on its loss" if name == "QuantileRegressor" else "", {}
