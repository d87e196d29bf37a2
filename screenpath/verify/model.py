r"""The models that certificates are of, as data: losses, penalty, intercept.

Objective   P = W sum_i s_i phi(t_i) + alpha/2 ||w||^2 + beta ||w||_1,  t_i = c_i - g_i.w - (g_i's sign) b
Dual        theta_i in [lo, hi], u = W sum_i s_i theta_i g_i; a free intercept asks for W sum_i s_i theta_i sign_i = 0

==========  =============  =======================  =====================  ==========================
model       c              [lo, hi], curve          W; alpha, beta         the file's dual variables
==========  =============  =======================  =====================  ==========================
svm         1              [0, 1], 0                C; 1, 0                times their row's weight
lad         y              [-1, 1], 0               C; 1, 0                times their row's weight
quantile    y              [tau - 1, tau], 0        C; 1, 0                times their row's weight
svr         +-y - epsilon  [0, 1], 0, two each row  C; 1, 0                times their row's weight
the same four with kernel  curve gamma              C; 1, 0                times their row's weight
sparse-svm  1              [0, 1], gamma            1/sum s; alpha, beta   as they are
the same, squared hinge    [0, inf], 1              1/sum s; alpha, beta   as they are
huber       y              [-1, 1], gamma           1/sum s; alpha, beta   as they are
sparse-NAME as of lad, quantile, svr, with gamma    1/sum s; alpha, beta   as they are
l1svm       1              [0, inf], 1              1; 0, lambda           none: max(0, t), the checker's own
==========  =============  =======================  =====================  ==========================

A row adds ``x`` to the sums of one node and takes it from those of another: nodes are the classes of a sparse SVM of
several; else the one vector ``w``, and a ground without weights, for ``g = x`` or ``-x``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from screenpath.errors import DataError
from screenpath.verify.data import Block, signs_of, weights_error, weights_of
from screenpath.verify.exact import UNIT, UP, Cells, fsum, two_sum
from screenpath.verify.groups import Groups

BOXES = ("svm", "lad", "quantile", "svr")
NETS = ("sparse-svm", "huber", "sparse-lad", "sparse-quantile", "sparse-svr")
REGRESSIONS = ("lad", "quantile", "huber")  # of one dual variable a row
FREE_DIGITS = 2.0**-50  # part of the primal value: which row takes the rest of a sum is the checker's choice
ARRAYS = {"between": np.float64, "w": np.float64, "values": np.float64, "index": np.int64}  # of a step, but codes
OWN_DIGITS = 2.0**-40  # the same where the dual point is the checker's own


class Part(NamedTuple):
    """Dual variables of a block, one a row, from number ``first``: kinks ``c + tail``, weights, what ``g`` is."""

    first: int
    own: np.ndarray  # node that gets x
    other: np.ndarray  # node that loses x
    c: np.ndarray
    tail: np.ndarray
    v: np.ndarray  # 0 too where a row has no such dual variable
    there: np.ndarray
    cells: Cells

    @property
    def signs(self) -> np.ndarray:
        """Return the signs of ``g``, of rows that have the one vector ``w``."""
        return np.where(self.own == 0, 1.0, -1.0)


class Model:
    """The problem of a certificate."""

    def __init__(self, header: dict, source):
        self.header, self.name, self.n = header, header["model"], source.n
        self.loss = self.name.removeprefix("sparse-")
        self.kernel: dict = header.get("kernel", {})
        labels = header.get("labels") or {}
        if self.name not in (*BOXES, *NETS, "l1svm"):
            raise DataError(f"certificates of the model '{self.name}' cannot be checked yet")
        self.box, self.net, self.own = self.name in BOXES, self.name in NETS, self.name == "l1svm"
        self.free = self.own or header.get("intercept") == "free"  # the last number is an intercept without penalty
        # Labels of the nodes; None if there are not several.
        self.classes = np.array(labels["classes"], float) if "classes" in labels else None
        self.nodes = 1 if self.classes is None else self.classes.size
        self.lo, self.hi, self.curve = self._loss()
        # Numbers of the primal point of each node, a bias or an intercept among them.
        self.width = 0 if self.kernel else source.d + (header["bias"] != 0.0)
        self.penalised = self.width - (self.free and not self.kernel)
        self.parts_each = 2 if self.loss == "svr" else self.nodes
        self.inexact = self._inexact()
        # Part of the primal value to which a claimed gap is read.
        self.digits = OWN_DIGITS if self.own or "groups" in header else FREE_DIGITS if self.free or self.kernel else 0.0
        self.samples, self.samples_tail = self._samples(header.get("weights"))
        self._refuse(labels, source.d)
        self.groups = self._groups()
        signs = header["signs"] if not self.box and "signs" in header else np.zeros(self.penalised)
        # Signs that penalised weights have to have, 0 for any: of features, and then of a bias.
        self.signs = np.tile(np.append(signs, np.zeros(self.penalised - signs.size)), self.nodes)

    def _refuse(self, labels: dict, d: int) -> None:
        header, kernel, sizes = self.header, self.kernel, {"weights": self.n, "scale": d, "shift": d, "fill": d}
        sizes |= {} if self.box else {"signs": d, "groups": d, "group_weights": d}
        arrays = [(header[name], size) for name, size in sizes.items() if name in header]
        good = all(array.dtype == np.float64 and array.size == size for array, size in arrays)
        good &= header.get("columns", np.int64()).dtype == np.int64
        good &= self.box or bool(np.all(np.isin(header.get("signs", 0.0), (-1.0, 0.0, 1.0))))
        good &= bool(np.all(header.get("scale", 1.0) > 0.0)) and header.get("epsilon", 0.0) >= 0.0
        numbers = [header[name] for name in ("bias", "tau", "epsilon", "smoothing") if name in header]
        numbers += [kernel[name] for name in ("gamma", "degree", "coef0", "constant") if kernel and name in kernel]
        good &= all(type(value) in (int, float) and math.isfinite(value) for value in numbers)
        if kernel:  # with another sign it is none, and a dual value no bound
            signs = kernel.get("gamma", 1.0) > 0.0 <= kernel.get("coef0", 0.0)
            good &= signs and kernel["constant"] >= 0.0 == header["bias"] and self.box
        if not good:
            raise DataError("an array of the certificate has another size, or a parameter a value that none has")
        bias, classes, several = header["bias"], self.classes, self.classes is not None
        if self.free and (bias != (0.0 if self.kernel else 1.0) or several and self.curve == 0.0):
            raise DataError("the certificate's bias is not the free one of this model")
        if classes is not None and (self.name != "sparse-svm" or classes.size < 3 or np.any(np.diff(classes) <= 0.0)):
            raise DataError("the certificate's options are not those of a sparse SVM of several classes")
        if not several and self.name == "sparse-svm" and not labels:
            raise DataError("the certificate's options are not those of a sparse SVM of two classes")

    def _groups(self) -> Groups | None:
        header = self.header
        if not {"groups", "group_weights", "l1_share"} & set(header):
            return None
        of, weights, share = header["groups"], header["group_weights"], header["l1_share"]
        good = self.name == "sparse-svm" and self.nodes == 1 and "signs" not in header and type(share) is float
        if not (good and 0.0 <= share < 1.0 and of.size == weights.size and 0 <= self.penalised - of.size <= 1):
            raise DataError("the certificate's groups are not those of a sparse SVM of two classes")
        found = Groups(of, weights, share, self.penalised)
        if not found.right:
            raise DataError("the certificate's groups have weights that are none, or two of one group")
        return found

    def _loss(self) -> tuple[float, float, float]:
        """Return ends and curve of the loss of a row of weight 1."""
        header = self.header
        smooth = header["smoothing"] if self.net else header.get("smoothing", 0.0) if self.box else 0.0
        exact = self.box and not self.kernel  # linear models with C have no smoothing
        if (self.box or self.loss != "svm") and (not 0.0 <= smooth < math.inf or exact and smooth > 0.0):
            raise DataError("the certificate's smoothing is none of the loss")
        if self.loss == "lad":
            return -1.0, 1.0, smooth
        if self.loss == "quantile":
            if not 0.0 < header["tau"] < 1.0:
                raise DataError("the certificate's quantile is not between 0 and 1")
            return header["tau"] - 1.0, header["tau"], smooth
        if self.loss == "svr":
            return 0.0, 1.0, smooth
        if self.name == "l1svm":
            return 0.0, math.inf, 1.0
        if not self.net:
            return 0.0, 1.0, smooth
        kind, gamma = header.get("loss", "hinge"), header["smoothing"]
        if self.name == "huber":
            if not 0.0 < gamma < math.inf:
                raise DataError("the certificate's smoothing is not positive")
            return -1.0, 1.0, gamma
        if kind not in ("hinge", "squared-hinge") or not 0.0 <= gamma < 1.0:
            raise DataError("the certificate's options are not those of a sparse SVM")
        return (0.0, math.inf, 1.0) if kind == "squared-hinge" else (0.0, 1.0, gamma)

    def _inexact(self) -> float:
        """Return the largest relative error of a weight, and of what a box's end is beside it."""
        weighted, error = "weights" in self.header, weights_error(self.header)
        if self.loss == "quantile":
            error += UNIT * (weighted + (two_sum(self.header["tau"], -1.0)[1] != 0.0))
        return 2.0 * UP * error if self.net else error  # a part of a sum is off by both

    def _samples(self, weights) -> tuple[float, float]:
        """Return what the sum over the rows is divided by, in two parts."""
        if not self.net:
            return 1.0, 0.0
        total = float(self.n) if weights is None else fsum(weights)
        if not 0.0 < total < math.inf:
            raise DataError("the certificate's weights have no sum")
        return total, 0.0 if weights is None else fsum([*weights.tolist(), -total])

    def penalty(self, entry: dict) -> tuple[float, float, float]:
        """Return W times the number of samples, alpha and beta at a step."""
        if self.box:
            return entry["C"], 1.0, 0.0
        return 1.0, *((0.0, entry["lambda"]) if self.own else (entry["alpha"], entry["beta"]))

    def parts(self, block: Block) -> list[Part]:
        y, n, first, header = block.labels, block.labels.size, block.first, self.header
        s, ones, zeros, every = weights_of(header, block), np.ones(n), np.zeros(n), np.ones(n, dtype=bool)
        cells, v = Cells(self.lo, self.hi, self.curve), s
        if self.box:
            curve = self.curve / np.where(s > 0.0, s, 1.0) if self.curve else 0.0
            cells, v = Cells(self.lo * s, self.hi * s, curve), ones
        if self.classes is not None:
            own = np.minimum(np.searchsorted(self.classes, y), self.nodes - 1)
            if not np.array_equal(self.classes[own], y):
                raise DataError("the data have a label that the certificate lacks", "name the data of the run")
            return [
                Part(c * self.n + first, own, np.full(n, c), ones, zeros, np.where(own == c, 0.0, v), own != c, cells)
                for c in range(self.nodes)
            ]
        minus = np.zeros(n, dtype=np.int64)  # the node that gets x: 0, or the ground
        if self.loss == "svr":
            kinks = [two_sum(sign * y, -header["epsilon"]) for sign in (ones, -ones)]
            return [
                Part(first + k * self.n, minus + k, 1 - minus - k, c, tail, v, every, cells)
                for k, (c, tail) in enumerate(kinks)
            ]
        if self.loss in REGRESSIONS:
            return [Part(first, minus, 1 - minus, y, zeros, v, every, cells)]
        own = np.where(signs_of(y, header["labels"]) > 0.0, 0, 1)
        return [Part(first, own, 1 - own, ones, zeros, v, every, cells)]

    def solution(self, entry: dict) -> np.ndarray:
        """Return the primal point of a step, a row for each node; a DataError if a number is none that it may be."""
        names = ("C",) if self.box else ("lambda",) if self.own else ("alpha", "beta")
        size = -(-self.n * self.parts_each // 4)
        codes = [entry[name] for name in ("states", "claims", "after") if entry.get(name) is not None]
        good = ("w" in entry) == (self.box and not self.kernel) and all(
            part.dtype == np.uint8 and part.size == size for part in codes
        )
        good &= all(entry[name].dtype == kind for name, kind in ARRAYS.items() if name in entry)
        for name in names:
            value = entry[name]
            good &= isinstance(value, float) and 0.0 <= value < math.inf and (value > 0.0 or self.net)
        good &= not self.net or entry["alpha"] + entry["beta"] > 0.0
        found = np.zeros(self.nodes * self.width)
        if self.kernel:
            found = np.array([entry["b"]] if self.free else [])
            good &= not self.free or type(entry["b"]) in (int, float)
        elif self.box:
            found = np.asarray(entry["w"])
            good &= found.size == self.width
        else:
            index, values, top = entry["index"], entry["values"], found.size - self.own
            rising = np.all(np.diff(np.concatenate([[-1], index, [top]])) > 0)
            good &= index.size == values.size and bool(rising)
            if good:
                found[index] = values
            if self.own:
                found[-1], off = entry["b"], entry.get("b_off", 0.0)
                numbers = all(isinstance(v, int | float) and type(v) is not bool for v in (entry["b"], off))
                good &= numbers and math.isfinite(off)
        if not good or not np.all(np.isfinite(found)):
            raise DataError(f"step {entry['step']}: the certificate's numbers do not fit the data")
        rows = found if self.kernel else found.reshape(self.nodes, self.width)
        if not self.box and np.any(rows[:, : self.penalised].ravel() * self.signs < 0.0):
            raise DataError(f"step {entry['step']}: a weight has another sign than the certificate asks for")
        return rows

    def dual_norm(self, u: np.ndarray, off: np.ndarray) -> float:
        """Return the dual norm of the penalty over beta, at most, of sums that are off by ``off``."""
        if self.groups is not None:
            return self.groups.dual_norm(np.abs(u) + off)
        return float(np.max(self.outward(u) + off, initial=0.0))

    def outward(self, u: np.ndarray) -> np.ndarray:
        """Return how far ``u`` goes towards weights that their signs allow: ``|u|``, or only one side of it."""
        return np.where(self.signs == 0.0, np.abs(u), np.where(self.signs < 0.0, -u, u))
