"""SIFS step by step: the features of one triggering by their definition, and all triggerings from scratch each."""

import math

import numpy as np
import pytest
from numba import config

from screenpath.kernels.problem.sparse import Samples
from screenpath.kernels.screen import sifs
from tests.proofs.test_conditioning import lines, pull
from tests.width import wide

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
# Compiled kernels have their constants built in.
uncompiled = pytest.mark.skipif(not config.DISABLE_JIT, reason="the unit of rounding is compiled in")
N, D = 9, 7
INF = math.inf


def outward(v, sign):
    """Return the size of a number, or of one with a sign how far it is on that side."""
    return sign * v if sign else abs(v)


def most_over(v1, v2, norm, between_sq, first_sq, second_sq, paper, sign=0):
    """Return the largest ``|v.x|`` over the dual balls that are used, and over their lens where both are."""
    r1, r2 = math.sqrt(first_sq), math.sqrt(second_sq)
    tops = [outward(v1, sign) + r1 * norm] if paper else []
    tops += [outward(v2, sign) + r2 * norm]
    if paper:
        above = min(sifs.lens_top(v1, v2, norm, between_sq, first_sq, second_sq), v1 + r1 * norm, v2 + r2 * norm)
        below = min(sifs.lens_top(-v1, -v2, norm, between_sq, first_sq, second_sq), r1 * norm - v1, r2 * norm - v2)
        tops.append({0: max(above, below), 1: above, -1: below}[int(sign)])
    return min(tops), max([outward(v1, sign) - r1 * norm] * paper + [outward(v2, sign) - r2 * norm])


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("paper", [True, False])
def test_features_of_one_triggering(dense, paper):
    rng = np.random.default_rng(0)
    beta, extent, slacks = 0.35, 1.4, (9.0, 0.02, 9.0, 0.03, 0.004, 9.0)
    seen = set()
    for k in range(120):
        classes = 1 + 2 * (k % 2)
        X = rng.normal(size=(N, D)) * (1.0 if dense else rng.random((N, D)) < 0.6)
        columns, size = lines(X.T), classes * D
        counts = np.diff(columns[2])
        psi = rng.normal(size=classes * N)
        u = (psi.reshape(classes, N) @ X).ravel() / N
        slack = np.where(rng.random(size) < 0.5, 0.2 * rng.random(size), 0.0)
        rough = np.where(slack > 0.0, u + slack * rng.uniform(-1.0, 1.0, size), u)
        ones, part, square, norms = (
            rng.normal(size=size), rng.normal(size=size) + 1.0, rng.random(size), rng.random(size),
        )  # fmt: skip
        moves = 0.1 * rng.normal(size=(2, size))
        first_sq, second_sq = rng.uniform(0.01, 1.5, 2)
        between_sq = rng.uniform(0.0, 1.0) * (first_sq + second_sq)
        moved = bool(k % 3 == 1)
        signs = rng.choice([-1, 0, 0, 1], size).astype(np.int8)
        keep = (rng.random(size) < 0.8).astype(np.int8)
        live = np.flatnonzero(keep)
        active = rng.random(size) < 0.1
        mine = rough.copy(), slack.copy(), keep.copy(), live.copy(), active.copy(), np.full(size, -1)
        balls, told = (first_sq, second_sq, between_sq, paper), (moved, *(moves if moved else np.empty((2, 0))))
        got = sifs.decide_features(
            columns, N, beta, (psi, mine[0], mine[1], ones, signs), (0.2, 0.9), told, (part, square, norms),
            balls, extent, slacks, mine[2:],
        )  # fmt: skip
        radii = math.sqrt(first_sq) if paper else INF, math.sqrt(second_sq)
        zero, touched, left, undecided = [], 0, 0.0, 0.0
        for f in live:
            cost = counts[f % D] * (0.25 if counts[f % D] == N else 1.0)
            if active[f]:
                left += cost
                continue
            move1, move2 = moves[:, f] if moved else (0.0, 0.0)
            norm = math.sqrt(max(part[f], 0.0) + 0.03 * square[f] + 0.004) / N
            limit = beta - 0.02 * (norms[f] * extent + beta)
            if slack[f] > 0.0:
                first_centre = outward(0.2 * ones[f] + 0.9 * rough[f] + move1, signs[f])
                tops = [first_centre + 0.9 * slack[f] + radii[0] * norm] * paper
                tops += [outward(rough[f] + move2, signs[f]) + slack[f] + radii[1] * norm]
                if min(tops) <= limit:
                    zero.append(f)
                    continue
                touched += counts[f % D]
                assert mine[0][f] == pytest.approx(u[f], abs=1e-14) and mine[1][f] == 0.0
            v1, v2 = 0.2 * ones[f] + 0.9 * u[f] + move1, u[f] + move2
            top, least = most_over(v1, v2, norm, between_sq, first_sq, second_sq, paper, signs[f])
            if least > 2.0 * beta - limit:
                assert mine[4][f]
                left += cost
            elif top <= limit:
                zero.append(f)
            else:
                assert mine[4][f] == active[f]
                left, undecided = left + cost, undecided + cost
            seen.add((least > 2.0 * beta - limit, top <= limit))
        assert got[0] == len(zero) and mine[5][: got[0]].tolist() == zero
        assert got[1:] == pytest.approx((touched, left, undecided))
        rest = [f for f in live if f not in set(zero)]
        assert np.flatnonzero(mine[2]).tolist() == rest and mine[3][: len(rest)].tolist() == rest
    assert len(seen) >= 3


def test_balls_within_the_plane_of_the_signed_sum():
    slacks = (0.1, 0.02, 0.3, 0.004, 0.5, 0.6)
    for first, second, apart, left in (
        (0.9, -0.5, 0.1, (0.84, 0.76, 0.06)), (-0.3, 0.2, 0.4, (1.0, 0.8, 0.2775)), (9.0, 0.2, 0.1, (0.0, 0.7975, 0.0)),
        (0.2, 9.0, 0.1, (0.9975, 0.0, 0.0)),
    ):  # fmt: skip
        found = sifs.in_plane(4.0, 9.0, first, second, apart, 1.0, 0.8, 0.7, 1.5, slacks)
        size = max(abs(first), abs(second)) / 2.0
        grown = 1.5 + apart / (0.02 * 2.0) + size * (1.0 + 1.5 * 0.004 / 0.02)
        assert found[:4] == pytest.approx((*left, grown))
        assert found[4] == pytest.approx((0.1, 0.02, 0.3, 0.004 * (1.0 + 4.0 * 1.5), 0.5, 0.6))
        assert sifs.in_plane(0.0, 9.0, first, second, apart, 1.0, 0.8, 0.7, 1.5, slacks) == (1.0, 0.8, 0.7, 1.5, slacks)


def scratch(X, given, ref, slacks, what, paper, beta, fixed, free, triggers=12):
    """Return status, keep and record: SIFS with everything summed anew at each triggering."""
    (labels, weights, _, classes, _, kinks, low, high), (samples, features, features_first) = given, what
    w, theta, u, ones = ref["w"], ref["theta"], ref["u"], ref["ones"]
    status, keep = fixed.copy(), np.ones(classes * D, dtype=int)
    real = np.ones((classes, N), dtype=bool)
    if classes > 1:
        real[labels, np.arange(N)] = False
    row_sq, record, turn = (X**2).sum(axis=1), [], int(features and (features_first or not samples))
    active = np.zeros(classes * D, dtype=bool)
    for trigger in range(triggers):
        if turn == 0:
            kept = keep.reshape(classes, D)
            gone = ref["primal_sq"] * (1.0 + slacks[5]) - ref["scale"] ** 2 * (w[keep == 0] ** 2).sum()
            radius = math.sqrt(max(gone, 0.0))
            scores = ((w * keep).reshape(classes, D) @ X.T).ravel()
            ball = ref["scale"], radius, ref["scale"] * ref["w_norm"] + radius
            part = (kept @ (X * (X - ref["twice"])).T).ravel()
            beside = (0.25 * (keep @ ref["twice"] ** 2), ref["level"]) if free else None
            found = sifs.decide_samples(
                scores, given, ball, (part, row_sq, np.sqrt(row_sq)), slacks, beside, status,
                np.empty(classes * N, dtype=int),
            )  # fmt: skip
            record.append([found, -1])
        else:
            decided = (status != 0) & real.ravel()
            value, every = np.where(status > 0, high, low), np.tile(weights, classes)
            e1 = np.where(decided, value - ref["kink_part"] * np.tile(kinks, classes) - ref["theta_part"] * theta, 0.0)
            e2 = np.where(decided, value - theta, 0.0)
            squares = [ref["first_sq"], ref["second_sq"], ref["between_sq"]]
            if decided.any():
                grown = [slacks[5] * s + 8.0 * sifs.UNIT * ref["theta_norm"] * math.sqrt(s) for s in squares]
                lost = every @ e1**2, every @ e2**2, every @ (e1 - e2) ** 2
                squares = [
                    max(s + sign * g - x, 0.0) for s, g, x, sign in zip(squares, grown, lost, (1, 1, -1), strict=True)
                ]
            moves = [pull(X, labels, classes, (every * e / N).reshape(classes, N)).ravel() for e in (e1, e2)]
            left = (real & (status.reshape(classes, N) == 0)).astype(float)
            part = np.zeros((classes, D))
            for c, i in zip(*np.nonzero(left), strict=True):
                part[c] += weights[i] * X[i] ** 2
                if classes > 1:
                    part[labels[i]] += weights[i] * X[i] ** 2
            part, found, size, bounds = part.ravel(), 0, ref["theta_norm"], slacks
            reach = math.sqrt(ref["second_sq"]) * (1.0 + slacks[1]) + slacks[1] * ref["theta_norm"]
            if not decided.any() and reach <= ref["room"]:
                stay = [f for f in ref["formed"] if keep[f]]
                if 2.0 * ref["costs"][stay].sum() < ref["costs"][keep != 0].sum():
                    found = np.count_nonzero(keep) - len(stay)
                    keep[:], keep[stay] = 0, 1
            if free:  # within the plane of the signed sum
                rest, whole = weights[status == 0].sum(), weights @ np.maximum(1.0, np.abs(kinks))
                centres = ref["kink_part"] * kinks + ref["theta_part"] * theta + e1, theta + e2
                sigmas, mean = [(labels * weights) @ at for at in centres], (weights * (status == 0)) @ X
                mean = mean / rest if rest else mean
                part = np.maximum(part - rest * mean**2, 0.0)
                moves = [move - sigma * mean / N for move, sigma in zip(moves, sigmas, strict=True)]
                apart = 8.0 * sifs.UNIT * (N + 32) * whole * (abs(ref["kink_part"]) + ref["theta_part"] + 1.0)
                *squares, size, bounds = sifs.in_plane(rest, whole, *sigmas, apart, *squares, size, slacks)
            for f in np.flatnonzero(keep & ~active):
                norm = math.sqrt(part[f] + bounds[3] * ref["col_sq"][f] + bounds[4]) / N
                limit = beta - bounds[1] * (ref["col_norm"][f] * size + beta)
                v1, v2 = ref["kink_part"] * ones[f] + ref["theta_part"] * u[f] + moves[0][f], u[f] + moves[1][f]
                top, least = most_over(v1, v2, norm, squares[2], *squares[:2], paper)
                active[f] = least > 2.0 * beta - limit
                if top <= limit and not active[f]:
                    keep[f] = 0
                    found += 1
            record.append([-1, found])
        if not (samples and features) or (found == 0 and trigger > 0):
            break
        turn = 1 - turn
    return status, keep, record


def reference(rng, X, labels, classes, weights, tight):
    """Return the numbers of a reference from which something is decided, round after round."""
    pairs = N if classes == 1 else N * (classes - 1)
    theta = rng.choice([0.0, 1.0, 0.5, 0.9], classes * N)
    if classes > 1:
        theta[labels * N + np.arange(N)] = 0.0
    w = rng.normal(size=classes * D) * (rng.random(classes * D) < 0.6)
    ones = np.ones(classes * N)
    col_sq = np.zeros((classes, D))
    for c in range(classes):
        for i in range(N):
            if classes == 1:
                col_sq[c] += weights[i] * X[i] ** 2
            elif c != labels[i]:
                col_sq[c] += weights[i] * X[i] ** 2
                col_sq[labels[i]] += weights[i] * X[i] ** 2
    return {
        "w": w, "theta": theta, "u": pull(X, labels, classes, theta.reshape(classes, N)).ravel() / N,
        "ones": pull(X, labels, classes, ones.reshape(classes, N)).ravel() / N, "scale": 1.1,
        "w_norm": np.linalg.norm(w), "primal_sq": tight, "kink_part": -0.1, "theta_part": 1.05,
        "first_sq": 3.0 * tight, "second_sq": 2.5 * tight,
        "between_sq": tight, "theta_norm": 2.0 * math.sqrt(pairs), "col_sq": col_sq.ravel(),
        "col_norm": np.sqrt(col_sq.ravel()) / N,
    }  # fmt: skip


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("what", [(True, True, True), (True, True, False), (True, False, True), (False, True, True)])
@pytest.mark.parametrize("unit", [2.0**-53, pytest.param(1e-4, marks=uncompiled), pytest.param(4e-3, marks=uncompiled)])
def test_all_triggerings_from_scratch(dense, what, unit, monkeypatch):
    monkeypatch.setattr(sifs, "UNIT", unit)
    rng = np.random.default_rng(3)
    beta, gamma, slacks = 0.3, 0.5, (0.01, 0.005, 0.001, 0.002, 0.0001, 0.01)
    rounds, found = [], 0
    for k in range(wide(40, 100)):
        classes = 1 + 2 * (k % 2)
        X = rng.normal(size=(N, D)) * (1.0 if dense else rng.random((N, D)) < 0.6)
        labels = rng.choice([-1, 1], N) if classes == 1 else np.arange(N) % 3
        free, weights, kinks, low = classes == 1 and k % 3 == 1, np.ones(N), np.ones(N), -1.0 * (k % 6 > 3)
        if k % 3:
            weights, kinks = rng.uniform(0.3, 2.0, (2, N))
        ref = reference(rng, X, labels, classes, weights, float(10.0 ** rng.uniform(-2.0, 0.3)))
        ref["twice"], ref["level"] = 0.5 * rng.normal(size=D) * free, 0.3 * free
        paper = k % 5 < 4
        rows, columns = lines(X), lines(X.T)
        counts = np.diff(columns[2])
        ref["costs"] = np.tile(np.where(counts == N, 0.25 * counts, counts), classes)
        ref["formed"] = np.sort(rng.choice(classes * D, int(rng.integers(1, 6)), replace=False))
        reach = math.sqrt(ref["second_sq"]) * (1.0 + slacks[1]) + slacks[1] * ref["theta_norm"]
        if k % 2 == k % 4:  # what is not formed has no weight, or nothing is known of it
            ref["w"][np.setdiff1d(np.arange(classes * D), ref["formed"])] = 0.0
            ref["w_norm"] = np.linalg.norm(ref["w"])
        else:
            reach = 0.0
        ref["room"] = reach * float(rng.choice([1.0 - 1e-9, 1.0 + 1e-9, 2.0]))
        status, keep = np.zeros(classes * N, dtype=np.int8), np.ones(classes * D, dtype=np.int8)
        scores = (ref["w"].reshape(classes, D) @ X.T).ravel()
        psi = np.zeros((classes, N))
        for c in range(classes):
            for i in range(N):
                if classes == 1:
                    psi[c, i] = labels[i] * ref["theta"][i]
                elif c != labels[i]:
                    psi[c, i] -= ref["theta"][c * N + i]
                    psi[labels[i], i] += ref["theta"][c * N + i]
        row_sq = (X**2).sum(axis=1)
        record = np.zeros((12, 2), dtype=np.int64)
        if classes > 1:
            status[labels * N + np.arange(N)] = 2  # no dual variables: never decided
        fixed = status.copy()
        constants = sifs.Constants(
            columns, rows, np.zeros(classes * D, dtype=np.int8), ref["ones"], row_sq, np.sqrt(row_sq), ref["col_sq"],
            ref["col_norm"], ref["twice"], columns[2], rows[2],
        )  # fmt: skip
        pair = sifs.Reference(
            scores, ref["w"], ref["theta"], psi.ravel(), ref["u"].copy(), np.zeros(classes * D), ref["formed"],
            ref["room"], ref["level"], ref["w_norm"],
        )  # fmt: skip
        regions = sifs.Regions(*(ref[name] for name in sifs.Regions._fields[:8]), paper=paper)
        known = sifs.Found(
            status, keep, np.tile((X * (X - ref["twice"])).sum(axis=1), classes), ref["col_sq"].copy(),
            weights @ X if free else np.zeros(0), np.zeros_like(keep), np.zeros(classes * N),
        )  # fmt: skip
        samples, planes = Samples(labels, weights, N, classes, gamma, kinks, low, 1.0), np.empty(4) if free else None
        touched, used = sifs.sifs(constants, samples, beta, pair, regions, what, slacks, known, record, planes)
        expected = scratch(X, samples, ref, slacks, what, paper, beta, fixed, free)
        np.testing.assert_array_equal(status, expected[0], err_msg=str(k))
        np.testing.assert_array_equal(keep, expected[1])
        assert record[:used].tolist() == expected[2] and np.all(record[used:] == -1)
        assert touched >= 0
        rounds.append(used)
        found += np.count_nonzero(status[fixed == 0]) + np.count_nonzero(keep == 0)
    assert found > wide(40, 100) and (max(rounds) >= 4) == (what[0] and what[1])
