"""Check a certificate of screenpath in exact rational numbers, by Python's standard library alone.

Usage: python check.py RUN DATA     (it reads RUN/certificate.bin; folds.bin, and files of `loo`, it does not read)
Written from `examples/guide/certificate.md`, whose sections are named below. It shares no code with screenpath, and
rounds nothing (irrational numbers lie between two fractions). Made for small data: products take microseconds.
"""

import bz2
import csv
import gzip
import hashlib
import json
import lzma
import math
import struct
import sys
import zlib
from collections import namedtuple
from decimal import Context
from fractions import Fraction
from operator import mul
from pathlib import Path

LOW, HIGH, BETWEEN, PAIRS = 0, 1, 2, {1: 0, 2: -1, 3: 1}  # PAIRS: which step proves a claim (own, before, after)
BOXES = "svm", "lad", "quantile", "svr"
NETS = "huber", *(f"sparse-{name}" for name in BOXES)
CHOICES, BITS, DECIMALS = 32, 320, Context(prec=120)  # tries for a free intercept; of irrational numbers (section 1)
ZERO, ONE, TRUTH = Fraction(0), Fraction(1), {"true": "1", "false": "0"}


def need(good, reason: str) -> None:
    if not good:
        raise ValueError(reason)


class Range(namedtuple("Range", "least most")):  # section 1
    """A real number that lies between two fractions; a comparison holds if it does for all numbers between them."""

    __mul__, __pow__, __add__ = (
        lambda x, y: Range(min(found := [a * b for a in x for b in set(ends(y))]), max(found)),
        lambda x, n: Range(min(found := [a**n for a in x] + [ZERO] * (x.least < 0 < x.most)), max(found)),
        lambda x, y: Range(x.least + ends(y)[0], x.most + ends(y)[1]),
    )
    __radd__, __rmul__, __abs__, __neg__ = __add__, __mul__, lambda x: larger(x, -x), lambda x: x * -1
    __sub__, __rsub__, __truediv__ = lambda x, y: x + -y, lambda x, y: -x + y, lambda x, y: x * (1 / y)
    __le__, __lt__ = lambda x, y: x.most <= ends(y)[0], lambda x, y: x.most < ends(y)[0]
    __ge__, __gt__ = lambda x, y: x.least >= ends(y)[1], lambda x, y: x.least > ends(y)[1]


def ends(x) -> tuple:
    return x if isinstance(x, Range) else (x, x)


def larger(*values):
    least, most = map(max, zip(*map(ends, values), strict=True))
    return Range(least, most) if any(isinstance(x, Range) for x in values) else most


def norm_inverse(square: Fraction) -> Range:  # to a relative 2^-BITS
    bits = BITS + square.numerator.bit_length()
    found = math.isqrt((square.denominator << 2 * bits) // square.numerator)
    return Range(Fraction(found, 1 << bits), Fraction(found + 1, 1 << bits))


def exp_minus(x) -> Range:  # to 2^-BITS: the argument is off by less than 10^-115, and exp is rounded correctly
    parts = (DECIMALS.divide(-y.numerator, y.denominator) for y in (min(y, Fraction(BITS)) for y in ends(x)))
    most, least = (math.floor(Fraction(DECIMALS.exp(part)) * (1 << BITS)) for part in parts)
    return Range(Fraction(max(least - 1, 0), 1 << BITS), Fraction(most + 2, 1 << BITS))


# -- section 4: the bytes -----------------------------------------------------------------------------------------
def frames(content: bytes):
    """Yield kind and entries of each frame; an array is its type and a tuple of numbers."""
    at = len(magic := b"screenpath certificate 1\n")
    need(content.startswith(magic), "the first line is another")
    while at < len(content):
        kind, (length, crc) = content[at : at + 1], struct.unpack("<QI", content[at + 1 : at + 13])
        part, at = content[at + 13 : at + 13 + length], at + 13 + length
        need(len(part) == length and zlib.crc32(kind + part) == crc, "a frame is cut short or has changed")
        stream, start = zlib.decompressobj(), 0
        line, newline, data = stream.decompress(part, 1 << 30).partition(b"\n")
        need(newline and stream.eof and not stream.unused_data, "a frame is not what zlib packs")
        entries = json.loads(line)
        for name, kind_of, count in entries.pop("arrays"):
            need(type(name) is str and name not in entries and type(count) is int, "an array has no name or size")
            code = f"<{count}" + {"f8": "d", "i8": "q", "u1": "B"}[kind_of]
            entries[name], start = (kind_of, struct.unpack_from(code, data, start)), start + struct.calcsize(code)
        need(start == len(data), "a frame has more or fewer bytes than its arrays")
        yield kind, entries


def read(content: bytes) -> tuple[dict, list]:
    """Return the problem and the steps; the claims of a frame N are ``after`` of the step that they are about."""
    (kind, header), *found = frames(content)
    need(kind == b"H" and found and found[-1][0] == b"E", "the first or the last frame is missing")
    steps: list[dict] = []
    for kind, entries in found[:-1]:
        need(kind in (b"S", b"N") and not header.get("one_vs_one"), "a frame is unknown, or of a pair of labels")
        need(entries["step"] == len(steps) - 2 * (kind == b"N") >= 0, "the frames are not in order")
        if kind == b"S":
            steps.append(entries | {"after": None})
        else:
            need(steps[-2]["after"] is None, "a step has two frames N")
            steps[-2]["after"] = entries.get("claims")
    need(found[-1][1]["steps"] == len(steps) > 0, "there are more or fewer steps, or none")
    return header, steps


def array(entries: dict, name: str, kind: str, count: int | None = None) -> tuple:
    found = entries[name]
    good = type(found) is tuple and found[0] == kind and count in (None, len(found[1]))
    need(good and (name == "between" or all(map(math.isfinite, found[1]))), f"{name} is another array")
    return found[1]


def codes(entries: dict, name: str, count: int) -> list[int]:
    packed = array(entries, name, "u1", -(-count // 4))
    return [packed[k // 4] >> 2 * (k % 4) & 3 for k in range(count)]


def real(entries: dict, name: str) -> Fraction:
    value = entries[name]
    need(type(value) in (int, float) and math.isfinite(value), f"{name} is no number")
    return Fraction(value)


def rising(*numbers) -> bool:
    return all(a < b for a, b in zip(numbers, numbers[1:], strict=False))


# -- section 3: the data ------------------------------------------------------------------------------------------
class Data:  # labels (doubles) and entries (feature, double) of the rows
    def __init__(self, path, header: dict):
        about, names = header["data"], header["data"].get("label_names") or ()
        self.n, self.d = about["n_samples"], about["n_features"]
        need(type(self.n) is type(self.d) is int and self.n > 0 <= self.d, "no data has this shape")
        self.names = {name: float(k) for k, name in enumerate(names)}
        need(len(self.names) == len(names), "two labels have one name")
        raw = Path(path).read_bytes()
        for magic, opener in ((b"\x1f\x8b", gzip), (b"BZh", bz2), (b"\xfd7zXZ\0", lzma)):
            raw = opener.decompress(raw) if raw.startswith(magic) else raw
        raw, table, first = raw.removeprefix(b"\xef\xbb\xbf"), about.get("table"), 1 - bool(about["zero_based"])
        rows = self.libsvm(raw, first) if table is None else self.table(raw, table)
        self.labels, self.rows = [label for label, _ in rows], [row for _, row in rows]
        index, values = ([entry[k] for row in self.rows for entry in row] for k in (0, 1))
        edges = [sum(map(len, self.rows[:i])) for i in range(len(rows) + 1)]
        need(all(rising(-1, *(j for j, _ in row), self.d) for row in self.rows), "the indices of a row do not rise")
        need(all(map(math.isfinite, self.labels + values)) and len(rows) == self.n, "no number, or not all the rows")
        digest = hashlib.sha256(repr((self.n, self.d)).encode())
        for code, part in (("q", index), ("q", edges), ("d", values), ("d", self.labels)):
            digest.update(struct.pack(f"<{len(part)}{code}", *part))
        self.sha256 = digest.hexdigest()

    def libsvm(self, raw: bytes, first: int) -> list:
        rows = []
        for line in raw.split(b"\n"):
            tokens = [token for token in line.partition(b"#")[0].split() if not token.startswith(b"qid:")]
            label, *numbers = b" ".join(tokens).replace(b":", b" ").split() or [b""]
            if label:
                index, values = ([float(token) for token in numbers[k::2]] for k in (0, 1))
                need(all(map(float.is_integer, index)), "an index is no integer")
                y = self.names[label.decode()] if self.names else float(label)
                rows.append((y, [(int(j) - first, v) for j, v in zip(index, values, strict=True)]))
        return rows

    def table(self, raw: bytes, table: dict) -> list:
        need("cells" not in table, "this checker fills in no missing values, nor leaves out rows")
        hot, wanted = table["one_hot"], [name.strip() for name in (table["target"], *table["columns"])]
        lines = [line + "\n" for line in raw.decode().lstrip("\r\n").split("\n")]
        heads = [[name.strip() for name in next(csv.reader(lines[:1], delimiter=mark))] for mark in ",;\t"]
        chosen = next((k for k, names in enumerate(heads) if set(wanted) <= set(names)), None)
        need(chosen is not None, "a column of the certificate is not in the table")
        rows, places = [], [heads[chosen].index(name) for name in wanted]
        for row in filter(None, csv.reader(lines[1:], delimiter=",;\t"[chosen], strict=True)):
            need(len(row) == len(heads[chosen]), "a row of the table has more or fewer cells")
            (label, *cells), entries, at = [row[k].strip() for k in places], [], 0
            for name, cell in zip(table["columns"], cells, strict=True):
                values = [float(cell == value) for value in hot.get(name, ())]
                known = name not in hot or cell == table.get("base", {}).get(name) or sum(values) == 1.0
                need(known, "a cell has none of the values of its column")
                values = values or [float(TRUTH.get(cell.lower(), cell))]
                entries += [(at + k, value) for k, value in enumerate(values) if value != 0.0]
                at += len(values)
            rows.append((self.names[label] if self.names else float(TRUTH.get(label.lower(), label)), entries))
        return rows


def scaled(data: Data, header: dict) -> list[dict]:
    """Return the rows from column to number, the bias in the last column."""
    kind, d, places, bias = header["scaling"], data.d, range(data.d), real(header, "bias")
    if "columns" in header:
        columns = array(header, "columns", "i8")
        need(rising(-1, *columns, d), "the columns do not rise")
        places, d = {j: k for k, j in enumerate(columns)}, len(columns)
    rows = [{places[j]: Fraction(v) for j, v in row} for row in data.rows]
    shift, scale = (list(map(Fraction, array(header, name, "f8", d))) if name in header else None
                    for name in ("shift", "scale"))  # fmt: skip
    need(kind in ("none", "maxabs", "standard", "l2"), "the scaling is unknown")
    need(scale is None or kind != "l2" and min(scale, default=1) > 0, "a scale is not positive, or should not be there")
    free = kind != "l2" and "kernel" not in header and (header.get("intercept") == "free" or header["model"] == "l1svm")
    need(None not in (scale, shift) if kind == "standard" else shift is None or free, "a scale or shift is wrong")
    if kind == "l2":
        norms = [norm_inverse(sum(v * v for v in row.values())) if any(row.values()) else ONE for row in rows]
        rows = [{j: v * norm for j, v in row.items()} for row, norm in zip(rows, norms, strict=True)]
    if shift:
        rows = [{j: row.get(j, ZERO) - shift[j] for j in range(d)} for row in rows]
    if scale:
        rows = [{j: v / scale[j] for j, v in row.items()} for row in rows]
    return [{**row, d: bias} for row in rows] if bias else rows


def dot(x: dict, w: dict) -> Fraction:
    return sum((value * w[j] for j, value in x.items() if j in w), ZERO)


# -- section 2: the problem ---------------------------------------------------------------------------------------
# A dual variable; its sides are the vectors that its row is in, each with its sign there.
Dual = namedtuple("Dual", "row sides c v low high gamma")


class Problem:
    def __init__(self, header: dict, data: Data):
        self.header, self.name, self.data, n = header, header["model"], data, data.n
        loss = self.name.removeprefix("sparse-")
        self.rows, self.kernel = scaled(data, header), header.get("kernel")
        labels = {} if header["labels"] is None else header["labels"]
        self.box, self.net, self.own = self.name in BOXES, self.name in NETS, self.name == "l1svm"
        need(self.box or self.net or self.own, "the model is unknown")
        self.tol, self.free = real(header, "tol"), self.own or header.get("intercept") == "free"
        need(type(header["tol"]) is float and self.tol > 0, "the tolerance is not positive")
        place = data.names.__getitem__ if data.names else float
        classes = [place(label) for label in labels.get("classes", ())]
        good = self.name == "sparse-svm" and len(classes) > 2 and rising(*classes) and not self.free
        need("classes" not in labels or good, "the classes do not rise, or are not of this problem")
        need(not self.free or real(header, "bias") == (0 if self.kernel else 1), "the bias is not a free intercept's")
        s = [Fraction(v) for v in array(header, "weights", "f8", n)] if "weights" in header else [ONE] * n
        need(min(s) >= 0 < sum(s), "a weight is negative, or all are 0")
        high = real(header, "tau") if loss == "quantile" else ONE
        low = Fraction(-1) if loss in ("lad", "huber") else high - 1
        need(0 < high < 1 or loss != "quantile", "tau is not between 0 and 1")
        smooth = self.net or self.kernel and "smoothing" in header
        self.gamma = real(header, "smoothing") if smooth else Fraction(self.own)
        need(smooth or not self.box or "smoothing" not in header, "a linear model with C has no smoothing")
        need("groups" not in header, "groups of features are not known here: screenpath verify checks them")
        squared = self.name == "sparse-svm" and {"hinge": 0, "squared-hinge": 1}[header.get("loss", "hinge")]
        good = 0 <= self.gamma < (1 if self.net and loss == "svm" else math.inf) and (self.gamma or loss != "huber")
        need(good, "the smoothing is none of the loss")
        self.gamma, high, self.top = (ONE, math.inf, ONE) if self.own or squared else (self.gamma, high, high)
        ranges = [(1, low * w, high * w, self.gamma / (w or 1)) if self.box else (w, low, high, self.gamma) for w in s]
        self.W, self.nodes = 1 / sum(s) if self.net else ONE, len(classes) or 1
        d = len(array(header, "columns", "i8")) if "columns" in header else data.d
        self.penalised = 0 if self.kernel else d + (header["bias"] != 0 and not self.free)
        self.width = self.penalised + (self.free and not self.kernel)
        signs = array(header, "signs", "f8", d) if not self.box and "signs" in header else [0] * d
        self.signs = [{-1: -1, 0: 0, 1: 1}[sign] for sign in (*signs, *[0] * (self.width - d))]
        y, own = list(map(Fraction, data.labels)), data.labels
        need((epsilon := real(header, "epsilon") if loss == "svr" else ZERO) >= 0, "epsilon is negative")
        if classes:
            own = [classes.index(label) for label in data.labels]
            self.duals = [Dual(i, {own[i]: 1, k: -1}, ONE, *ranges[i]) if k != own[i] else Dual(i, {}, *[ZERO] * 5)
                          for k in range(len(classes)) for i in range(n)]  # fmt: skip
        elif loss in ("lad", "quantile", "svr", "huber"):
            self.duals = [Dual(i, {0: k}, k * y[i] - epsilon, *ranges[i])
                          for k in (1, -1)[: 1 + (loss == "svr")] for i in range(n)]  # fmt: skip
        else:
            plus, minus = place(labels["+1"]), labels["-1"]
            need(minus == "rest" or set(own) <= {plus, place(minus)}, "a label is not in the map")
            self.duals = [Dual(i, {0: 1 if own[i] == plus else -1}, ONE, *ranges[i]) for i in range(n)]
        self.K = self.matrix(self.kernel) if self.kernel else []

    def matrix(self, kernel: dict) -> list:
        name, constant = kernel["kernel"], real(kernel, "constant")
        need(self.box and name in ("linear", "poly", "rbf", "laplacian"), "no model has this kernel")
        need(real(self.header, "bias") == 0 <= constant, "there is a bias beside a kernel, or the constant is negative")
        gamma = ONE if name == "linear" else real(kernel, "gamma")
        power, shift = (kernel["degree"], real(kernel, "coef0")) if name == "poly" else (1 + (name == "rbf"), ZERO)
        need(type(power) is int and 1 <= power <= 1 << 16 and gamma > 0 <= shift, "gamma, degree or coef0 are none")
        if name in ("linear", "poly"):
            return [[(gamma * dot(x, z) + shift) ** power + constant for z in self.rows] for x in self.rows]
        away = [[sum(abs(x.get(j, 0) - z.get(j, 0)) ** power for j in {*x, *z}) for z in self.rows] for x in self.rows]
        return [[exp_minus(gamma * value) + constant for value in row] for row in away]


# -- sections 5 and 6: a step -------------------------------------------------------------------------------------
class Step:  # what follows from the points of a certified step
    def __init__(self, problem: Problem, entry: dict):
        self.problem, self.entry, self.fault, duals = problem, entry, "", problem.duals
        names = ("C",) if problem.box else ("lambda",) if problem.own else ("alpha", "beta")
        numbers = all(type(entry[name]) is float for name in (*names, "primal", "primal_error", "gap"))
        values = [real(entry, name) for name in names]
        need(numbers and min(values) >= 0 < max(values), "a parameter is not positive, or a claim is no number")
        self.W = values[0] if problem.box else problem.W
        self.alpha, self.beta = (ONE, ZERO) if problem.box else (ZERO, values[0]) if problem.own else values
        self.theta = [] if problem.own else self.dual_point()
        self.b = real(entry, "b") if problem.own or problem.kernel and problem.free else ZERO
        if problem.kernel:
            self.w, (_, found, self.square) = [], self.behind(self.theta)
            forms, penalty = [[form] for form in found], self.square / 2
        else:
            self.w = self.primal_point()
            places = [{j: x for j, x in enumerate(w) if x} for w in self.w]
            forms = [[dot(row, w) for w in places] for row in problem.rows]
            weights = [x for w in self.w for x in w[: problem.penalised]]
            penalty = self.alpha * sum(x * x for x in weights) / 2 + self.beta * sum(map(abs, weights))
        self.form = [sum(sign * forms[d.row][node] for node, sign in d.sides.items()) for d in duals]
        outside = self.b if problem.kernel else 0  # an intercept that is no last entry of w
        self.t = [d.c - form - (outside and d.sides[0] * outside) for d, form in zip(duals, self.form, strict=True)]
        self.losses = [self.loss(d, t) for d, t in zip(duals, self.t, strict=True)]
        self.P = self.W * sum(d.v * loss for d, loss in zip(duals, self.losses, strict=True)) + penalty
        if problem.own:
            off = real(entry, "b_off") if "b_off" in entry else ZERO
            self.theta = [larger(t - d.sides[0] * off, ZERO) for d, t in zip(duals, self.t, strict=True)]

    def behind(self, theta: list) -> tuple:  # a kernel: the share of each row in w, the forms, the square of w
        signed = [self.W * d.sides[0] * x for d, x in zip(self.problem.duals, theta, strict=True)]
        mass = [sum(signed[i :: len(self.problem.K)]) for i in range(len(self.problem.K))]
        forms = [sum(map(mul, row, mass)) for row in self.problem.K]
        return mass, forms, sum(map(mul, mass, forms))

    def dual_point(self) -> list:
        duals, found, box, top = self.problem.duals, [], self.problem.box, self.problem.top
        self.states = codes(self.entry, "states", len(duals))
        between = iter(array(self.entry, "between", "f8", self.states.count(BETWEEN)))
        for k, (state, d) in enumerate(zip(self.states, duals, strict=True)):
            value = next(between) if state == BETWEEN else (d.low, d.high if box else top, 0, math.inf)[state]
            if not (d.low <= value <= d.high and value < math.inf):
                self.fault, value = self.fault or f"row {k + 1}: the dual variable is outside its interval", ZERO
            found.append(Fraction(value))
        return found

    def primal_point(self) -> list:
        problem, entry, width = self.problem, self.entry, self.problem.width
        if problem.box:
            return [list(map(Fraction, array(entry, "w", "f8", width)))]
        index, top = array(entry, "index", "i8"), problem.nodes * width - problem.own
        values, found = array(entry, "values", "f8", len(index)), [ZERO] * top + [self.b] * problem.own
        need(rising(-1, *index, top), "the weights are not in order")
        for j, value in zip(index, values, strict=True):
            need(value * problem.signs[j % width] >= 0, "a weight has a sign that it must not have")
            found[j] = Fraction(value)
        return [found[k * width : (k + 1) * width] for k in range(problem.nodes)]

    def loss(self, d: Dual, t: Fraction) -> Fraction:
        best = -larger(-larger(t / d.gamma, d.low), -d.high) if d.gamma else ZERO
        return t * best - d.gamma / 2 * best * best if d.gamma else larger(t * d.low, t * d.high)

    def point(self, theta: list) -> list:  # u
        found = [[ZERO] * self.problem.width for _ in range(self.problem.nodes)]
        for d, x in zip(self.problem.duals, theta, strict=True):
            for node, sign in d.sides.items() if x else ():
                for j, value in self.problem.rows[d.row].items():
                    found[node][j] += sign * d.v * x * value
        return [[self.W * value for value in vector] for vector in found]

    def completed(self) -> list:
        """Return dual points that meet what a free intercept asks for: one variable is moved."""
        duals, theta, slopes = self.problem.duals, self.theta, []
        rest = sum(d.sides[0] * d.v * x for d, x in zip(duals, theta, strict=True)) if self.problem.free else ZERO
        for k, (d, x, t) in enumerate(zip(duals, theta, self.t, strict=True) if rest else ()):
            moved = x - d.sides[0] * rest / d.v if d.v else -math.inf
            if d.low <= moved <= d.high:
                slopes.append((ends(abs(t - d.gamma * x))[1], k, moved))
        return [[*theta[:k], x, *theta[k + 1 :]] for _, k, x in sorted(slopes)[:CHOICES]] if rest else [theta]

    def gap(self, theta: list) -> Fraction:  # of the primal point and a feasible dual point
        problem, duals = self.problem, self.problem.duals
        L = self.W * sum(d.v * d.c * x for d, x in zip(duals, theta, strict=True))
        Q = self.W / 2 * sum(d.v * d.gamma * x * x for d, x in zip(duals, theta, strict=True))
        if problem.kernel:
            return self.P - L + Q + self.behind(theta)[2] / 2
        sizes = [x * s if s else abs(x) for u in self.point(theta) for x, s in zip(u, problem.signs, strict=True)]
        if self.alpha:
            return self.P - L + Q + sum(larger(x - self.beta, ZERO) ** 2 for x in sizes) / (2 * self.alpha)
        most, top = ends(larger(ZERO, *sizes))[1], ends(2 * Q)[1]
        best = ONE if not problem.own else ends(L)[0] / top if top else ZERO  # whatever it is: D is a bound
        x = min(best, self.beta / most) if most else best
        return self.P - x * L + x * x * Q if problem.own else self.P - x * (L - Q)

    def judge(self) -> str:
        """Return what does not hold; nothing if all does."""
        problem, claims = self.problem, [self.entry[name] for name in ("primal", "primal_error", "gap")]
        if self.fault or not all(map(math.isfinite, claims)):
            return self.fault or "a claim is infinite or no number"
        gaps, (primal, error, claimed) = list(map(self.gap, self.completed())), map(Fraction, claims)
        if not gaps:
            return "no dual variable has room for what a free intercept asks"
        P, gap, apart, small = self.P, min(ends(gap)[1] for gap in gaps), abs(self.P - primal), Fraction(2.0**-30)
        digits = P * Fraction(2.0**-40 if problem.own else 2.0**-50 if problem.free or problem.kernel else 0)
        checks = {
            "the gap is not within the tolerance": gap <= problem.tol * P,
            "the gap is larger than claimed": gap <= claimed * (1 + Fraction(2.0**-40)) + digits,
            "the gap is claimed to be too large": claimed <= problem.tol * P * (1 + Fraction(2.0**-50)) + digits,
            "the primal value is another": apart <= error + small * P and apart <= max(small, problem.tol) * P,
        }
        return next((reason for reason, good in checks.items() if not good), "")

    def claims(self, steps: dict) -> str:  # which claim about a row does not hold; nothing if all do
        n, balls, problem = len(self.states), {}, self.problem
        after = [0] * n if self.entry["after"] is None else codes(self.entry, "after", n)
        for k, (own, later, d) in enumerate(zip(codes(self.entry, "claims", n), after, problem.duals, strict=True)):
            if not (own or later):
                continue
            pair = steps.get(self.entry["step"] + PAIRS[own or later])
            if pair is None or pair.fault or problem.free or d.gamma or self.states[k] > HIGH:
                return f"row {k + 1}: it is claimed to be fixed, and nothing proves it"
            balls[pair] = balls.get(pair) or pair.ball(self.W / pair.W)
            h, one, two = balls[pair]
            norm = problem.K[d.row][d.row] if problem.kernel else sum(x * x for x in problem.rows[d.row].values())
            margin = (h * pair.form[k] - d.c) * (1 if self.states[k] == LOW else -1)
            first = margin * margin - norm * (one + two)
            if not (margin > 0 and first > 0 and first * first > 4 * norm * norm * one * two):
                return f"row {k + 1}: it is not proven to be at its end in the optimum"
        return ""

    def ball(self, x: Fraction) -> tuple:  # h, and the squares of the two parts of R
        terms, two = zip(self.losses, self.theta, self.t, strict=True), ZERO
        if self.problem.kernel:
            one = (1 - x) ** 2 * self.square
        else:
            pairs = list(zip(self.w[0], self.point(self.theta)[0], strict=True))
            one, two = (sum((w - y * u) ** 2 for w, u in pairs) for y in (x, ONE))
        return (1 + x) / 2, one / 4 + x * self.W * sum(loss - y * t for loss, y, t in terms), x * x / 4 * two


def certified(content: bytes, path) -> tuple[dict, list, dict, list]:
    """Return problem, entries of all steps, the certified steps by number, and (step, fault) where one fails."""
    header, entries = read(content)
    data = Data(path, header)
    need(data.sha256 == header["data"]["sha256"], "the data are not those of the certificate (their hash is another)")
    problem = Problem(header, data)
    steps = {entry["step"]: Step(problem, entry) for entry in entries if entry["status"] == "certified"}
    faults = [(k, step.judge() or (step.claims(steps) if problem.box else "")) for k, step in steps.items()]
    return header, entries, steps, [(k, fault) for k, fault in faults if fault]


# -- section 8: the folder around it ------------------------------------------------------------------------------
def compare(folder: Path, header: dict, entries: list, steps: dict):
    """Yield (step, fault) of what the folder says otherwise."""
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    text = json.dumps({k: v for k, v in record.items() if k != "sha256"}, sort_keys=True, separators=(",", ":"))
    need(record["sha256"] == hashlib.sha256(text.encode()).hexdigest(), "run.json has changed")
    contents = {name: (folder / name).read_bytes() for name in record["files"]}
    for (name, content), about in zip(contents.items(), record["files"].values(), strict=True):
        need(about == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}, f"{name} has changed")
    rows = json.loads(contents["steps.json"])["steps"] if "steps.json" in contents else []
    rows = rows or list(csv.DictReader(contents["steps.csv"].decode().splitlines()))
    need(len(rows) == len(entries), "the step table has more or fewer steps")
    for row, entry in zip(rows, entries, strict=True):
        names = {"step", "status", "C", "alpha", "beta", "lambda", *(("primal", "gap") * (entry["step"] in steps))}
        if any(str(row.get(name)) != str(entry[name]) for name in names & set(entry)):
            yield entry["step"], "the step table says something else"
    classes, found = (header["labels"] or {}).get("classes", ["all"]), {}
    for row in csv.DictReader(contents.get("coefficients.csv", b"").decode().splitlines()):
        label, number = row.get("class", "all"), int(row.get("feature") or row.get("sample"))
        key = int(row["step"]), classes.index(label if label in classes else float(label))
        need(0 <= key[0] < len(entries) and number not in found.setdefault(key, {}), "a coefficient is there twice")
        found[key][number] = float(row["value"])
    for k, step in steps.items() if "coefficients.csv" in contents else ():
        for node, (expected, parts) in enumerate(solutions(step)):
            values = found.get((k, node), {})
            apart = abs(Fraction(values.pop(0, 0.0)) - sum(parts))
            if {j: v for j, v in values.items() if v} != expected or apart > sum(map(abs, parts)) / (1 << 44):
                yield k, "the coefficients are others"


def solutions(step: Step):
    """Yield for each class the coefficients by number, and what the intercept is the sum of."""
    problem, header = step.problem, step.problem.header
    if problem.kernel:
        mass, _, _ = step.behind(map(Fraction, map(float, step.theta)))
        yield {i: float(x) for i, x in enumerate(mass, 1) if x}, [step.b]
    numbers = array(header, "columns", "i8") if "columns" in header else range(problem.data.d)
    scale, shift = (array(header, name, "f8") if name in header else [v] * len(numbers)
                    for name, v in (("scale", 1.0), ("shift", 0.0)))  # fmt: skip
    for w in step.w:
        exact = [x / Fraction(s) for x, s in zip(w, scale, strict=False)]
        parts = [-x * Fraction(m) for x, m in zip(exact, shift, strict=True)] + [w[-1] * real(header, "bias")]
        yield {j + 1: float(x) for j, x in zip(numbers, exact, strict=True) if x}, parts


def main(arguments: list) -> int:
    if len(arguments) != 2 or Path(arguments[0]).is_file():
        print("usage: python check.py RUN DATA     (RUN is a folder: files of `loo` are not read)", file=sys.stderr)
        return 2
    try:
        folder = Path(arguments[0])
        header, entries, steps, faults = certified((folder / "certificate.bin").read_bytes(), arguments[1])
        faults = faults or list(compare(folder, header, entries, steps))
    except Exception as error:  # of whatever kind: what cannot be read does not hold
        print(f"does not hold: {error or type(error).__name__} ({type(error).__name__})")
        return 1
    nothing = len(entries) - len(steps)
    unread = "; folds.bin is not read" if (folder / "folds.bin").exists() else ""
    lines = [f"does not hold at step {k}, {fault}" for k, fault in faults]
    print("\n".join(lines) or "holds" + f", {nothing} steps claim nothing" * (nothing > 0) + unread)
    return 1 if faults else 3 if nothing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
