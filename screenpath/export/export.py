"""One step of a run as a model file: LIBLINEAR, LIBSVM, JSON, NPZ, ONNX, or an estimator of scikit-learn."""

import io
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from pathlib import PurePath
from typing import Any

import numpy as np

from screenpath.catalogue.elastic import SPARSE_SVM, hinge_named
from screenpath.catalogue.kernel_models import behind_kernel
from screenpath.catalogue.scores import pairs_of
from screenpath.catalogue.spec import Later
from screenpath.catalogue.specs import SPECS
from screenpath.data.words.labels import label_text, rest_label, whole_label
from screenpath.data.words.tables import SCHEMA_VERSION, dump_json, readable_json
from screenpath.errors import ResourceError, UsageError
from screenpath.numbers import sparse as sp
from screenpath.store.open import Run


def liblinear_text(run: Run, step: dict) -> str:
    """Return a model file for LIBLINEAR's ``predict``, with the same linear forms.

    The intercept is the weight of a constant feature of value 1 (``bias 1``). The first label is that of positive
    linear forms; a form of 0 gives the second, as in ``screenpath predict``.
    """
    _refuse_filling(run, "LIBLINEAR")
    if run.record["preparation"].get("scaling") == "l2":
        hint = "export `to=json` or npz, or normalise the data file and compute the path with `scale=none`"
        raise UsageError("LIBLINEAR does not divide rows by their norm, as this run with `scale=l2` does", hint)
    weights, intercepts = run.deciding(step)
    if run.classes:
        kind, labels = "MCSVM_CS", run.classes
    else:
        kind = SPECS[run.model].liblinear
        labels = [run.labels["+1"], rest_label(run.labels)] if run.labels else None
    bias = bool(np.any(intercepts))
    lines = [f"solver_type {kind}", f"nr_class {len(labels) if labels else 2}"]
    if labels:
        lines.append("label " + " ".join(whole_label(label, "LIBLINEAR") for label in labels))
    lines += [f"nr_feature {run.n_features}", f"bias {1 if bias else -1}", "w"]
    rows = [" ".join(repr(v) for v in row) + " \n" for row in weights.T.tolist()]
    if run.numbers is not None:  # the format has a line for every feature
        empty, gaps = " ".join(["0.0"] * len(weights)) + " \n", np.diff(run.numbers, prepend=0) - 1
        rows = [empty * gap + row for gap, row in zip(gaps.tolist(), rows, strict=True)]
        rows.append(empty * (run.n_features - int(run.numbers[-1])))
    rows += [" ".join(repr(v) for v in intercepts.tolist()) + " \n"] if bias else []
    return "\n".join(lines) + "\n" + "".join(rows)


def libsvm_text(run: Run, step: dict, training: str | tuple | None = None) -> str:
    """Return a model file for LIBSVM's ``svm-predict``, with the same decisions or values on the same data file.

    LIBSVM's kernels have no constant: it becomes a part of ``rho``, as it adds the sum of the coefficients to each
    form. The first label is that of positive forms. Any regression is a sum like that of LIBSVM's ``epsilon_svr``.
    Parameters as of :func:`exported`.
    """
    from screenpath.inputs.run_data import support_of  # not at the top: it loads numba

    if not run.kernel:
        hint = "export `to=json` or `to=npz`, or add `kernel=linear`" if run.voting else "export `to=liblinear`"
        raise UsageError(f"{run.path} is a run without a kernel", hint)
    _refuse_filling(run, "LIBSVM")
    scaling = run.record["preparation"].get("scaling") or "none"
    if scaling != "none":
        elsewhere = "" if run.voting else "export `to=onnx` or `to=sklearn`, or "
        hint = f"{elsewhere}scale the data file and compute the path with `scale=none`"
        raise UsageError(f"LIBSVM does not scale new data, and this run has `scale={scaling}`", hint)
    if run.kernel not in LIBSVM_KERNELS:
        hint = REST if run.voting else "export `to=onnx`, `to=json`, `to=npz` or `to=sklearn`"
        raise UsageError(f"LIBSVM has no kernel {run.kernel}", hint)
    support = support_of(run, step, training, dense=False)
    function, rows = support.function, sp.csr_array(support.rows)
    rho = -(support.intercept + function.constant * support.coefficients.sum(axis=0))
    order, labels = np.arange(rows.shape[0]), list(run.classes or [])
    coefficients, sizes = np.atleast_2d(support.coefficients.T).T, [order.size]
    if run.voting:
        own, coefficients = _of_labels(coefficients, len(labels))
    elif run.labels:
        own, labels = (support.coefficients <= 0.0).astype(np.int64), [run.labels["+1"], rest_label(run.labels)]
    if run.labels:
        order, sizes = np.argsort(own, kind="stable"), np.bincount(own, minlength=len(labels)).tolist()
    lines = [f"svm_type {'c_svc' if run.labels else 'epsilon_svr'}", f"kernel_type {LIBSVM_KERNELS[function.name]}"]
    chosen = function.describe()
    lines += [f"{name} {chosen[name]!r}" for name in ("degree", "gamma", "coef0") if name in chosen]
    lines += [f"nr_class {len(labels) or 2}", f"total_sv {order.size}", _line("rho", map(repr, np.ravel(rho).tolist()))]
    if run.labels:
        others = ("",) if run.voting else ()  # no other file holds these models
        whole = [whole_label(label, "LIBSVM", *others) for label in labels]
        lines += [_line("label", whole), _line("nr_sv", map(str, sizes))]
    lines.append("SV")
    numbers = np.arange(1, rows.shape[1] + 1) if run.numbers is None else run.numbers
    for k in order:
        part = slice(rows.indptr[k], rows.indptr[k + 1])
        values = zip(numbers[rows.indices[part]].tolist(), rows.data[part].tolist(), strict=True)
        cells = " ".join(f"{j}:{v!r}" for j, v in values if v != 0.0)
        lines.append(f"{' '.join(map(repr, coefficients[k].tolist()))} {cells} ")
    return "\n".join(lines) + "\n"


def _line(name: str, values) -> str:
    return " ".join([name, *values])


def _of_labels(coefficients: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the label of each support vector, and its coefficients as LIBSVM has them: against each other label.

    ``coefficients``, shape (m, pairs), tell the label: their signs are those of the sides of the pairs, and a row is in
    pairs of its own label alone.
    """
    pairs = np.array(pairs_of(count))
    at = (coefficients != 0.0).argmax(axis=1)
    one = coefficients[np.arange(len(at)), at] > 0.0
    own = np.where(one, *pairs[at].T)
    found = np.zeros((len(at), count - 1))
    for p, (a, b) in enumerate(pairs.tolist()):  # in the row of a label its own place is left out
        for label, column in ((a, b - 1), (b, a)):
            rows = own == label
            found[rows, column] = coefficients[rows, p]
    return own, found


def _refuse_filling(run: Run, tool: str) -> None:
    if run.fill is not None:
        what = f"{tool} does not fill in missing values, as this run with `missing` does"
        others = "" if run.voting else "export `to=onnx` or `to=sklearn`, or "
        raise UsageError(what, f"{others}fill them in first")


def _kernel_model(run: Run, step: dict, training: str | tuple | None) -> tuple[Any, dict]:
    """Return support vectors as csr_array, in the units of the kernel, and what describes the model besides them.

    ``f(x) = sum_k coefficients_k K(support_k, (x - shift) / scale) + intercept``, of the columns ``features`` of ``x``.
    """
    from screenpath.inputs.run_data import support_of  # not at the top: it loads numba

    found = support_of(run, step, training, dense=run.record["data"]["storage"] == "dense")
    arrays = {"shift": found.preparation.shift, "scale": found.preparation.scale, "features": run.numbers}
    more = {name: one for name, one in arrays.items() if one is not None}
    about = found.function.describe() | ({} if found.compressed is None else {"compressed": asdict(found.compressed)})
    kernel = {"kernel": about, "intercept": found.intercept, "coefficients": found.coefficients}
    return sp.csr_array(found.rows), {**kernel, **more}


def json_text(run: Run, step: dict, training: str | tuple | None = None) -> str:
    """Return the model as JSON: a description, and for each class the intercept and the non-zero weights.

    ``features`` are numbered from 1 in the order of the file's columns. A kernel model has ``support`` instead, for
    each support vector its entries, of columns numbered from 1, and what :func:`_kernel_model` describes.
    """
    if run.kernel:
        rows, about = _kernel_model(run, step, training)
        plain = {name: one.tolist() if isinstance(one, np.ndarray) else one for name, one in about.items()}
        ends = [slice(a, b) for a, b in pairwise(rows.indptr.tolist())]
        support = [{"columns": (rows.indices[k] + 1).tolist(), "values": rows.data[k].tolist()} for k in ends]
        return readable_json({**description(run, step), **plain, "support": support}, levels=1) + "\n"
    weights, intercepts = run.deciding(step)
    blocks = []
    for w, b in zip(weights, intercepts, strict=True):
        where = np.flatnonzero(w)
        features = where + 1 if run.numbers is None else run.numbers[where]
        blocks.append({"intercept": float(b), "features": features.tolist(), "values": w[where].tolist()})
    if run.blocks:
        of, names = ("pair", map(label_text, run.blocks)) if run.voting else ("label", run.blocks)
        blocks = [{of: name, **block} for name, block in zip(names, blocks, strict=True)]
    return readable_json({**description(run, step), "weights": blocks}, levels=1) + "\n"


def npz_bytes(run: Run, step: dict, training: str | tuple | None = None) -> bytes:
    """Return the model as NPZ: ``weights`` (k, d), ``intercepts`` (k,), ``labels`` as text, ``description`` as JSON.

    ``labels`` are those of the rows of ``weights``; with one row those of negative and positive linear forms; empty for
    a regression. For wide data with few values ``weights`` is (k, m), for the features whose numbers, from 1, are in
    ``features``. A kernel model has ``support`` (m, d) in place of ``weights``, ``coefficients`` (m,), of several
    labels (m, k), and ``shift`` and ``scale`` (d,) where there are some, see :func:`_kernel_model`.
    """
    names = np.array([label_text(v) for v in run.blocks or run.sides], dtype=np.str_)
    file, about = io.BytesIO(), description(run, step)
    if run.kernel:
        rows, more = _kernel_model(run, step, training)
        about["kernel"], arrays = more.pop("kernel"), {"support": rows.toarray()}
        arrays["intercepts"] = np.array([more.pop("intercept")])
    else:
        weights, intercepts = run.deciding(step)
        arrays, more = {"weights": weights, "intercepts": intercepts}, {}
        more |= {} if run.numbers is None else {"features": run.numbers}
    np.savez_compressed(file, **arrays, labels=names, description=np.array(dump_json(about)), **more)
    return file.getvalue()


def skops_bytes(run: Run, step: dict, training: str | tuple | None = None) -> bytes:
    """Return the step as a fitted scikit-learn estimator in a skops file; ``training`` as of :func:`exported`."""
    try:
        return Later("sklearn.export", "skops_bytes")(run, step, training)
    except ImportError as error:
        why = f": {error}" if error.name else ""  # otherwise the error is ours, about an extra without skops
        needed = f"this takes scikit-learn 1.6 or newer and skops{why}"
        raise ResourceError(needed, "pip install 'screenpath[skops]'") from None


# By name in the shell and in Python. The command's help lists these names, so nothing here loads numba.
FORMATS: dict[str, Callable[..., str | bytes]] = {
    "liblinear": liblinear_text,
    "libsvm": libsvm_text,
    "json": json_text,
    "npz": npz_bytes,
    "onnx": Later("export.export_onnx", "onnx_bytes"),
    "sklearn": skops_bytes,
}
# The format that the end of a file's name tells; .model is LIBSVM's of a kernel run.
SUFFIXES = {".onnx": "onnx", ".skops": "sklearn", ".json": "json", ".npz": "npz", ".model": "liblinear"}
LIBSVM_KERNELS = {"rbf": "rbf", "linear": "linear", "poly": "polynomial"}
KERNEL = ("onnx", "sklearn", "libsvm", "json", "npz")  # formats that hold kernel models
VOTES, ARRAYS = ("libsvm",), ("json", "npz")  # those that hold models of pairs behind a kernel; of any models
REST = "compute the path with `one_vs_rest`, and export `to=json`"  # where no file holds the votes
MOST = 10**8  # most features in a format with an entry for each: a gigabyte


def kind_of(run: Run, name: str) -> str:
    """Return the format of ``FORMATS`` that the name of a file tells."""
    kind = SUFFIXES.get(PurePath(name).suffix.lower())
    if kind is None:
        ends, own = ", ".join(SUFFIXES), "onnx" if run.kernel else "json"
        raise UsageError(f"the file name {name} does not indicate a format", f"end it in {ends}, or add `to={own}`")
    return "libsvm" if kind == "liblinear" and run.kernel else kind


def check_holds(run: Run, kind: str) -> None:
    """Refuse a run whose decisions a kind of ``FORMATS`` cannot hold."""
    run.declared()
    scaling = str(run.record["preparation"].get("scaling") or "none")
    if run.kernel == "precomputed":
        what = f"{run.path} has a precomputed kernel: no row of it is known to a model file"
        raise UsageError(what, "weigh kernel values with coefficients.csv")
    if run.blocks and (run.kernel or run.voting):
        allowed = VOTES if run.kernel and run.voting else ARRAYS
        what = f"`to={kind}` has no votes of pairs of labels, by which {run.path} decides"
        if not run.voting:
            what = f"`to={kind}` has no models of several labels behind one kernel, as {run.path} has"
        if kind not in allowed and allowed is VOTES and scaling != "none":
            raise UsageError(what, "scale the data file, compute the path with `scale=none`, and export `to=libsvm`")
        if kind not in allowed:
            known = allowed is ARRAYS or run.kernel in LIBSVM_KERNELS
            raise UsageError(what, f"export `to={allowed[0]}`" if known else REST)
    if run.kernel and kind not in KERNEL:
        what = f"{run.path} is a kernel run: it has no weights of features"
        raise UsageError(what, "export `to=libsvm`, `to=onnx`, `to=json`, `to=npz` or `to=sklearn`")
    scaled = scaling in ("standard", "maxabs")  # for a kernel, only scales are listed
    lists_all = kind == "liblinear" or (kind == "sklearn" and (scaled or not run.kernel))
    if run.n_features > MOST and lists_all:
        what = f"`to={kind}` stores a weight for every feature, and {run.path} has features up to {run.n_features:,}"
        raise UsageError(what, "export `to=onnx`" if run.kernel else "export `to=json`, `to=npz` or `to=onnx`")


def exported(run: Run, step: dict, kind: str, training: Any = None, compress: float | None = None, say=None):
    """Return a step, a row of the step table, as a model file of a kind of ``FORMATS``.

    ``training`` is the training data of a kernel run, if they have moved. ``compress``: keep only as many support
    vectors as change no decision by more, which ``say`` is told.
    """
    if training is not None and not (run.kernel and kind in KERNEL):
        raise UsageError("`training` is used only for a kernel run", "leave it out")
    check_holds(run, kind)
    if compress is not None:
        training = Later("export.compact", "compact")(run, step, compress, training)
        if say is not None:
            say(training.compressed.words(training.coefficients.size))
    return FORMATS[kind](run, step, training) if run.kernel or kind in KERNEL else FORMATS[kind](run, step)


# -- descriptions of a run and its step, for model files, pages and `show` ---------------------------------------------


def description(run: Run, step: dict) -> dict:
    """Return the description of a step in model files, without its weights."""
    return {
        "schema_version": SCHEMA_VERSION,
        "model": run.model,
        "objective": run.record.get("objective"),
        "step": step["step"],
        "parameters": {name: step[name] for name in run.parameters},
        "status": step["status"],
        "rel_gap": step.get("rel_gap"),
        "n_features": run.n_features,
        "first_index": 0 if run.record["options"].get("zero_based") else 1,
        "rows": "l2" if run.record["preparation"].get("scaling") == "l2" else "as they are",
        "labels": run.labels,
        **({} if step.get("threshold") is None else {"threshold": step["threshold"]}),  # the intercepts are less by it
        **({} if step.get("sigmoid_slope") is None else {"sigmoid": run.sigmoid(step)}),  # of these intercepts
        **({} if run.fill is None else {"missing": run.fill.tolist()}),
        **({} if run.form is None else {"table": run.form.record()}),
        **({} if run.feature_names is None else {"feature_names": list(run.feature_names)}),
    }


def values_words(run: Run, name: str) -> str:
    """Return the requested values of a parameter and, for an unfinished run, those that are done."""
    asked, done = (_across(rows, name, run.parameters[-1]) for rows in (run.table, run.steps))
    return asked if done == asked else f"{asked}; done: {done}"


def _across(rows: list, name: str, last: str) -> str:
    """Return the ends and the number of values of a parameter; in a grid, of those at each value of the ``last``."""
    values = [row[name] for row in rows]
    low, high, count = min(values), max(values), len(set(values))
    if low == high:
        return f"{low:.6g}"
    each = Counter(row[last] for row in rows).values()
    said = f"{'' if min(each) == max(each) else 'up to '}{max(each):,} at each {last}"
    return f"{low:.6g} to {high:.6g}, {f'{count:,} values' if name == last or max(each) >= count else said}"


def title_of(run: Run) -> str:
    """Return the name of a run's solutions, in the plural."""
    if run.model == SPARSE_SVM.name:
        return hinge_named(SPARSE_SVM, run.record["options"]).title
    return (behind_kernel(SPECS[run.model]) if run.kernel else SPECS[run.model]).title


def loss_values(run: Run) -> list:
    options, words = run.record["options"], re.split(r"\W+", str(run.record.get("objective")))
    letters = [("C", "c"), ("tau", "tau"), ("epsilon", "epsilon"), ("gamma", "smoothing")]
    letters = [pair for pair in letters if pair[0] in words and pair[0] not in run.parameters]
    found = [(letter, options.get(name)) for letter, name in letters]
    return [(letter, value) for letter, value in found if isinstance(value, int | float)]


def kernel_words(record: dict) -> str:
    """Return the kernel of a run's record in words, and how much of its matrix was stored."""
    names = [name for name in ("gamma", "degree", "coef0") if record.get(name) is not None]
    names += ["constant"] if record.get("constant") else []
    words = ", ".join([record["kernel"], *(f"{name} {record[name]:.6g}" for name in names)])
    if record.get("rows_kept") is None:
        return words
    return f"{words}; {record['rows_kept']:,} rows of its matrix kept, {record['bytes'] / 1e6:.3g} MB"


def intercept_words(run: Run) -> str:
    """Return the kind of intercept of a linear model."""
    if SPECS[run.model].free_bias or run.record["options"].get("intercept") == "free":
        return "free"
    bias = run.record["preparation"].get("bias")
    return f"penalised (bias {bias:g})" if bias else "none"
