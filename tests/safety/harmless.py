"""Changes that change no claim, with the reason: ``mutants.py`` does not count them."""

SIGN = "only the sign is looked at, and a quotient has that of the product"
UNSURE = "rows whose side is not sure have a share of the gap, and are formed again for that"
SHORTCUT = "a shortcut for data without gaps: the loop behind it returns the same"
SPLIT = "a factor split one bit further up: the products of the parts are exact all the same"
ROOM = "the sum of the leading bits has two bits of room, of which this takes no more than that"
WAY = "which of two ways to the same numbers is tried: what it costs, not what comes of it"
SIFS = "screenpath/kernels/screen/sifs.py"
FINITE = "a sum and a difference are both no finite number where one of their parts is none"
NUMBERS = "r.primal_sq + r.first_sq + r.second_sq + r.between_sq"
STEPS = "which steps are tried: each that is found to stay below proves it, whatever it came from"
ENOUGH = "what no digits mend: such a row's share of the gap is larger than the error of its product"
ONES = "a sign or a label of two classes is 1 or -1"
EXACT = "screenpath/verify/exact.py"
PRODUCT = "p, x, y = a * b, 134217729.0 * a, 134217729.0 * b"
GRID = "grid = np.ldexp(1.0, exponent + 1 + int(counts.max() + 2).bit_length())[columns]"
MEETING = "(left[1] - right[1] + right[2] * (left[0] - right[0]))"
AGAIN = "counts |= (hi * (t + C * e) > 0.0) | (lo * (t - C * e) > 0.0)"
SHARP, BOX = "screenpath/problem/sharp.py", "screenpath/kernels/problem/box.py"
CONDITIONING = "screenpath/kernels/screen/conditioning.py"
TALLIES = (
    "count, touched, left, undecided, begin = count + new, touched + summed, left + cost, undecided + open_cost, end"
)
PRECISE = "screenpath/kernels/rows/precise.py"
REDUCED = "k = np.floor(t / LN2 + 0.5)"
REACHED = "what is left of an exponent is up to 1.5 ln 2 then, for which the series is below its bound as well"
FUNCTIONS = "screenpath/rows/kernel_functions.py"
COLUMNS = "width = max(1, CHUNK_CELLS // max(n, 1))"
HALF = "self.error = (0.5 / LARGEST + 16.0 * UNIT) * OUTWARD"
HALVES = ("(0.5 / LARGEST + 16.0 * UNIT) / OUTWARD", "8.0")
CUT = "a value is rounded four times, which 8 units are enough for"
CHUNKS = "how many columns are looked at at a time: what it costs, not what comes of it"
OPEN = "share = np.maximum(up * (t + e), down * (e - t))"
LEVER = "screenpath/kernels/screen/lever.py"
PATHWISE = "screenpath/screen/pathwise.py"
KINDS = "if isinstance(a, KernelPoint) and isinstance(b, KernelPoint):"
BALLS = "if isinstance(pair, LeverBall) and isinstance(guess, LeverBall):"
PLANE = "own, other = _best_in_plane(model.losses(reference), reference.point, far.point, C, C / reference.C)"
START = "if not limit > 0.0 and self.bounds[kernels.ZERO] == 0.0:"
CALLS = "accurate, key, self.calls = None, None, self.calls + 1"
TURN = "if min(map(len, found)) < model.turn:"
RANGE = "screenpath/regions/lever.py"
TAU = "tau = own.kinks - 0.5 * signs * (certificate.point.products + C * duals)"
AT = "at = own.kinks[of] - 0.5 * signs[of] * point.products[of], -0.5 * signs[of] * duals[of]"
RANGE_SLACK = "slack = model.rounding * (model.norms * extent_of(certificate) + np.abs(own.kinks))"
CHOSEN = "rows and weights are chosen without it, and the offsets that it is part of are formed anew"
ACTIVE = "active = (model.hi * (t + e) > 0.0) | (model.lo * (t - e) > 0.0)"

OWN = "rows = row_shares(t, errors + 4.0 * UNIT * np.abs(own), theta, np.ones(theta.size), lo, hi, bend)"

# (module, function, line as it is written, expression as it is changed): why.
HARMLESS: dict[tuple[str, str, str, str], str] = {
    ("screenpath/problem/smooth.py", "sums", OWN, "2.0"): "three roundings, which hardly ever add up",
    (SHARP, "that_matter", OPEN, "up / (t + e)"): SIGN,
    (SHARP, "that_matter", OPEN, "down / (e - t)"): SIGN,
    (SHARP, "that_matter", ACTIVE, "model.hi / (t + e)"): SIGN,
    (SHARP, "that_matter", ACTIVE, "model.lo / (t - e)"): SIGN,
    (SHARP, "that_matter", ACTIVE, "t - e"): UNSURE,
    (SHARP, "that_matter", ACTIVE, "t + e"): UNSURE,
    (SHARP, "with_terms", ACTIVE, "model.hi / (t + e)"): SIGN,
    (SHARP, "with_terms", ACTIVE, "model.lo / (t - e)"): SIGN,
    (CONDITIONING, "lines_cost", "if indptr[count] == length * count:", "length / count"): SHORTCUT,
    (CONDITIONING, "keep_columns", "if indptr[d] == n * d:", "n / d"): SHORTCUT,
    (PATHWISE, "Pathwise._proven", "if self.floor == -np.inf:", "+np.inf"): (
        "saves the work of a bound that is above -inf in any case; what is no number is not certified"
    ),
    ("screenpath/regions/geometry.py", "between", KINDS, KINDS[3:-1].replace("and", "or")): "points are of one kind",
    ("screenpath/screen/box.py", "IT.region", BALLS, BALLS[3:-1].replace("and", "or")): "balls are of one kind",
    (PATHWISE, "nearer_pair", PLANE, "C * reference.C"): "where a point is looked for: what comes of it is certified",
    ("screenpath/problem/box.py", "BoxModel.start", START, "limit < 0.0"): "w is 0 there as well: there is one optimum",
    (
        "screenpath/problem/kernel.py",
        "KernelModel._surely_beyond",
        "return bool(np.any((t * self.c[some] < 0.0) & (self.lo[some] < self.hi[some])))",
        "t / self.c[some]",
    ): "a quotient has the sign of the product but for a kink at 0, and a path may begin with either certificate",
    ("screenpath/walk/loop.py", "Audit.__call__", CALLS, "self.calls - 1"): "a number that no other call has",
    ("screenpath/walk/one_vs_rest.py", "walk_classes", TURN, "max(map(len, found))"): "steps in vain are not yielded",
    (EXACT, "two_product", PRODUCT, "67108864.5"): SPLIT,
    (EXACT, "ColumnSums.add", GRID, "0.5"): ROOM,
    (EXACT, "ColumnSums.add", GRID, "exponent - 1"): ROOM,
    (EXACT, "ColumnSums.add", GRID, "counts.max() - 2"): ROOM,
    (
        EXACT,
        "norm_above",
        "return size * math.sqrt(float(part @ part) + TINY) * (1.0 + gamma(values.size + 8))",
        "float(part @ part) - TINY",
    ): "the largest part is 1, beside which TINY is lost",
    (
        "screenpath/kernels/screen/sifs.py",
        "margin_bounds",
        "center, far = scale * labels[i] * score[i], part[i] + base",
        "scale / labels[i]",
    ): ONES,
    ("screenpath/kernels/screen/sifs.py", "decide_features", "dense = indptr[d] == n * d", "n / d"): SHORTCUT,
    ("screenpath/screen/sparse.py", "_stretched", "if np.any(w != reference.w):", "w == reference.w"): WAY,
    (SIFS, "sifs", "if rows_gone <= undecided:", "rows_gone > undecided"): WAY,
    (SIFS, "sifs", "left, gone = stay, left - stay", "left + stay"): WAY,
    (
        SIFS,
        "in_plane",
        "grown = extent + apart / (slacks[1] * root) + size * (1.0 + np.sqrt(part) * slacks[3] / slacks[1])",
        "0.5",
    ): "the slack that it is multiplied by is eight times what a sum of so many terms is off by, or more",
    (FUNCTIONS, "exact_shift", COLUMNS, "min(1, CHUNK_CELLS // max(n, 1))"): CHUNKS,
    (FUNCTIONS, "exact_shift", COLUMNS, "min(n, 1)"): CHUNKS,
    (
        FUNCTIONS,
        "exact_shift",
        "exact = ((part - (total - back)) - (near + back) == 0.0).all(axis=0)  # the rest of two_sum(part, -near)",
        "part - (total - back) + (near + back)",
    ): "its two terms vanish, or differ in size: so it is for all pairs of numbers of half precision",
    **{(FUNCTIONS, "FixedValues.__init__", HALF, changed): CUT for changed in HALVES},
    (PRECISE, "exp_minus", REDUCED, "t / LN2 - 0.5"): REACHED,
    (PRECISE, "exp_minus", REDUCED, "0.25"): REACHED,
    (PRECISE, "exp_minus", "r, r_low = plus(r, r_low, -product, -error)", "+error"): (
        "of the low part of k ln 2: below 2^-98, a bound of 2^-90 allows for it"
    ),
    (PRECISE, "exp_minus", "value, low = 1.0, 0.0", "0.5"): "the last term of the series is below a tenth of the bound",
    **{
        ("screenpath/screen/sparse.py", "finite", f"radii = {NUMBERS}", f"{before} - {last}"): FINITE
        for before, _, last in (" + ".join(NUMBERS.split(" + ")[:k]).rpartition(" + ") for k in range(2, 7))
    },
    **{
        ("screenpath/kernels/screen/move.py", "stays_below", line, after): STEPS
        for line, changed in (
            ("eta = 2.0 * move.budget / (n * room)", ("2.0 * move.budget * (n * room)", "2.0 / move.budget", "1.0")),
            ("eta = 2.0 * move.budget / (n * room)", ("n / room",)),
            ("eta = (eta + height / fall) * (1.0 + BEYOND if fall > 0.0 else 1.0 - BEYOND)", ("0.5",)),
            (f"apart = {MEETING} / (left[2] - right[2])", (f"{MEETING} * (left[2] - right[2])", "left[2] + right[2]")),
            (f"apart = {MEETING} / (left[2] - right[2])", ("left[0] + right[0]", f"{MEETING[1:-1]}".replace("+", "-"))),
            ("eta = left[0] + apart if left[2] * apart >= left[1] else 0.0", ("left[0] - apart",)),
        )
        for after in changed
    },
    **{
        ("screenpath/verify/products.py", "_exactly", AGAIN, after): ENOUGH
        for after in ("lo * (t - C * e) < 0.0", "lo / (t - C * e)", "t + C * e")
    },
    (LEVER, "decide_by_one_each", "side = (under - over) * signs[i]", "(under - over) / signs[i]"): ONES,
    **{
        (LEVER, "decide_exactly", "best, most, reach = -1, -np.inf, -1.0", after): "no lever has a reach below 0"
        for after in ("+1", "+1.0")
    },
    (
        "screenpath/regions/lever.py",
        "KernelLevered.decide",
        "if kappa <= 0.0 or not used.size:",
        "kappa <= 0.0 and (not used.size)",
    ): "a lever that says nothing has no weights either",
    (
        "screenpath/cv/certify.py",
        "FreeLine.certain",
        "if self.levers[2, k] > 0.0 and rows.size:",
        "self.levers[2, k] > 0.0 or rows.size",
    ): "a lever that carries nothing is infinitely wide",
    (
        "screenpath/problem/between.py",
        "not_above",
        "return np.where(free, 1.0, start), np.where(free, 0.0, end)",
        "0.5",
    ): "a start behind the end, 0, either way",
    ("screenpath/cv/certify.py", "heaviest", "return 0, 0.5", "0.25"): "of no intervals every point is in none",
    (RANGE, "seen_by", TAU, "0.5 / signs"): ONES,
    (RANGE, "pair_levers", AT, "0.5 / signs[of]"): ONES,
    (RANGE, "seen_by", RANGE_SLACK, "model.norms / extent_of(certificate)"): CHOSEN,
    (
        RANGE,
        "seen_by",
        RANGE_SLACK,
        "model.rounding / (model.norms * extent_of(certificate) + np.abs(own.kinks))",
    ): CHOSEN,
    (
        RANGE,
        "LeverRange.decide",
        'for k in np.argsort(-ready.levers[2], kind="stable"):  # the longest decide most',
        "+ready.levers[2]",
    ): "the order that levers are asked in: a row that one decides none decides otherwise",
    (
        RANGE,
        "LeverRange.decide",
        "if ready.levers[2, k] <= 0.0 or not left.size:",
        "ready.levers[2, k] <= 0.0 and (not left.size)",
    ): "a lever that carries nothing is infinitely wide",
}
