"""One step of a kernel run as a model file of LIBSVM: its support vectors, their coefficients and rho = -b."""

from __future__ import annotations

import numpy as np

from screenpath.data.words.labels import rest_label, whole_label
from screenpath.errors import UsageError
from screenpath.inputs.predict_kernel import support_of
from screenpath.numbers import sparse as sp
from screenpath.store.open import Run

NAMES = {"rbf": "rbf", "linear": "linear", "poly": "polynomial"}


def libsvm_text(run: Run, step: dict, training: str | None = None) -> str:
    """Return the model file that LIBSVM's ``svm-predict`` reads, with the same decisions on the same data file.

    A constant in the kernel, which LIBSVM's have not, is a part of ``rho``: it adds the sum of the coefficients to each
    form. The first label is the one of positive forms. The parameters are those of
    :func:`screenpath.export.export.exported`.
    """
    if not run.kernel:
        raise UsageError(f"{run.path} is a run without a kernel", "export `to=liblinear`")
    scaling = run.record["preparation"].get("scaling") or "none"
    if scaling != "none":
        raise UsageError(
            f"LIBSVM does not scale new data, and this run has `scale={scaling}`",
            "export `to=onnx` or `to=sklearn`, or scale the data file and compute the path with `scale=none`",
        )
    support = support_of(run, step, training, dense=False)
    function, rows = support.function, sp.csr_array(support.rows)
    assert run.labels is not None
    labels = [whole_label(label, "LIBSVM") for label in (run.labels["+1"], rest_label(run.labels))]
    rho = -(support.intercept + function.constant * float(support.coefficients.sum()))
    positive = support.coefficients > 0.0
    lines = ["svm_type c_svc", f"kernel_type {NAMES[function.name]}"]
    chosen = function.describe()
    lines += [f"{name} {chosen[name]!r}" for name in ("degree", "gamma", "coef0") if name in chosen]
    lines += ["nr_class 2", f"total_sv {positive.size}", f"rho {rho!r}", f"label {labels[0]} {labels[1]}"]
    lines += [f"nr_sv {int(positive.sum())} {int((~positive).sum())}", "SV"]
    numbers = np.arange(1, rows.shape[1] + 1) if run.numbers is None else run.numbers
    for k in (*np.flatnonzero(positive), *np.flatnonzero(~positive)):
        part = slice(rows.indptr[k], rows.indptr[k + 1])
        values = zip(numbers[rows.indices[part]].tolist(), rows.data[part].tolist(), strict=True)
        cells = " ".join(f"{j}:{v!r}" for j, v in values if v != 0.0)
        lines.append(f"{float(support.coefficients[k])!r} {cells} ")
    return "\n".join(lines) + "\n"
