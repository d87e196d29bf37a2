"""The exact hinge with elastic net: screenpath beside rehline, Clarabel, OSQP and skglm, all to 1e-6.

    python examples/benchmarks/exact_hinge.py                          # 5 x 20 pairs (alpha, beta) on each set
    python examples/benchmarks/exact_hinge.py --only german_scale --runs 5

One thread, CPU seconds, compilation excluded, sides alternating in one process. Their tolerance is not a gap: of a
ladder the loosest is taken with which every pair is within 1e-6 of the optimum, relatively, as judged in plain numpy
by the dual points of a solve to 1e-9. Rivals walk the same grid: rehline (which has an elastic net) and skglm from the
last solution, Clarabel and OSQP as a quadratic program of 2 d + n variables; OSQP keeps its factor and starts warm.
skglm has no hinge: its primal-dual solver is given one (dense data). cyanure has the squared hinge alone. A trial ends
after 20 times our seconds, or 10 s where that is more: "> x".
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings

import one_thread  # isort: skip  (before numpy)

import numpy as np
import scipy.sparse as sp
from problems import DATA, DENSE_ABOVE, ROOT, Missing
from sklearn.datasets import load_svmlight_file

from screenpath import sparse_svm_path
from screenpath.data.files.generate import generate

TARGET, FINE = 1e-6, 1e-9
CAP, LEAST = 20.0, 10.0
SETS = ("breast_cancer", "german_scale", "1000x1000", "pcmac", "magic04")


def data_of(name: str):
    """Return ``X`` (dense where more than a third is) and signs; dense real sets are standardised."""
    if "x" in name and name.replace("x", "").isdigit():
        n, p = map(int, name.split("x"))
        X, y = generate("hong-syn1", 0, n=n, p=p)
    else:
        places = (ROOT / "data_samples" / f"{name}.libsvm", DATA / "binary" / f"{name}.libsvm.gz")
        file = next((place for place in places if place.is_file()), None)
        if file is None:
            raise Missing(f"{places[1]} is not there")
        X, y = load_svmlight_file(str(file))
    X, y = sp.csr_matrix(X), np.where(y == y.max(), 1.0, -1.0)
    if X.nnz > DENSE_ABOVE * X.shape[0] * X.shape[1]:
        X = X.toarray()
        spread = X.std(axis=0)
        X = np.ascontiguousarray((X - X.mean(axis=0))[:, spread > 0.0] / spread[spread > 0.0])
    return X, y


def rehline(X, y, pairs, tol):
    """Yield the weights at each pair: the solver without its estimator, from the last dual point."""
    from rehline import ReHLine_solver

    n, d = X.shape
    dual, box = None, None
    for alpha, beta in pairs:
        C = 1.0 / (n * alpha)
        U, V = (-C * y)[None, :], np.full((1, n), C)
        more = {} if dual is None else {"Lambda": dual, "mu": box}
        found = ReHLine_solver(
            X, U, V, rho=np.full(d, beta / alpha), max_iter=1_000_000, tol=tol, verbose=0, **more
        )  # fmt: skip
        dual, box = found.Lambda, found.mu
        yield found.beta


def program(X, y):
    """Return the constraints ``l <= A z`` of ``z = (w, bounds of |w|, losses)``, and what the losses have at least."""
    n, d = X.shape
    signed, eye, loss = sp.csc_matrix(sp.diags(y) @ X), sp.eye(d, format="csc"), sp.eye(n, format="csc")
    rows = [[signed, None, loss], [None, None, loss], [eye, eye, None], [-eye, eye, None]]
    low = np.concatenate([np.ones(n), np.zeros(n + 2 * d)])
    return sp.bmat(rows, format="csc"), low


def weights_of(n, d, alpha, beta):
    """Return the quadratic and the linear part of the objective."""
    square = sp.block_diag([alpha * sp.eye(d), sp.csc_matrix((d + n, d + n))], format="csc")
    return square, np.concatenate([np.zeros(d), np.full(d, beta), np.full(n, 1.0 / n)])


def clarabel(X, y, pairs, tol):
    """Yield the weights at each pair."""
    import clarabel as solver

    (n, d), (A, low) = X.shape, program(X, y)
    settings = solver.DefaultSettings()
    settings.verbose, settings.max_iter, settings.max_threads = False, 500, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    for alpha, beta in pairs:
        cone = [solver.NonnegativeConeT(A.shape[0])]
        square, linear = weights_of(n, d, alpha, beta)
        yield np.array(solver.DefaultSolver(square, linear, -A, -low, cone, settings).solve().x[:d])


def osqp(X, y, pairs, tol):
    """Yield the weights at each pair."""
    import osqp as solver

    (n, d), (A, low) = X.shape, program(X, y)
    problem = None
    for alpha, beta in pairs:
        square, linear = weights_of(n, d, alpha, beta)
        if problem is None:
            problem = solver.OSQP()
            problem.setup(square, linear, A, low, np.full(low.size, np.inf), eps_abs=tol, eps_rel=tol,
                          max_iter=100_000, verbose=False)  # fmt: skip
        else:
            problem.update(q=linear, Px=np.full(d, alpha), Px_idx=np.arange(d))
        yield problem.solve().x[:d]


def skglm(X, y, pairs, tol):
    """Yield the weights at each pair: rows are multiplied by their signs."""
    from hinge_datafit import hinge
    from skglm.experimental import PDCD_WS
    from skglm.penalties import L1_plus_L2
    from skglm.utils.jit_compilation import compiled_clone

    signed = np.asfortranarray(y[:, None] * X)
    datafit, penalty, ones = compiled_clone(hinge(y.size)), compiled_clone(L1_plus_L2(1.0, 0.5)), np.ones(y.size)
    solver, w = PDCD_WS(tol=tol, max_iter=1000, max_epochs=10_000), np.zeros(X.shape[1])
    for alpha, beta in pairs:
        penalty.alpha, penalty.l1_ratio = alpha + beta, beta / (alpha + beta)
        w = solver.solve(signed, ones, datafit, penalty, w.copy(), signed @ w, run_checks=False)[0]
        yield w


RIVALS = {"rehline": rehline, "clarabel": clarabel, "osqp": osqp, "skglm": skglm}
LADDER = [10.0 ** (-k) for k in range(4, 13)]


def objective(X, y, w, alpha, beta) -> float:
    return np.maximum(1.0 - y * (X @ w), 0.0).mean() + 0.5 * alpha * w @ w + beta * np.abs(w).sum()


def walked(rival, X, y, pairs, tol, cap):
    """Return the weights of a path and its CPU seconds; None where it takes longer than the cap."""
    began, found = time.process_time(), []
    for w in rival(X, y, pairs, tol):
        found.append(np.array(w))
        if time.process_time() - began > cap:
            return None, cap
    return found, time.process_time() - began


def loosest(rival, X, y, pairs, bounds, cap):
    """Return the loosest tolerance that reaches the target, or None with why there is none."""
    best = np.inf
    for tol in LADDER:
        found, _ = walked(rival, X, y, pairs, tol, cap)
        if found is None:
            return None, f"over the cap at {tol:.0e}" + (f" (within {best:.0e} before)" if best < np.inf else "")
        over = [objective(X, y, w, *pair) / bound - 1.0 for w, pair, bound in zip(found, pairs, bounds, strict=True)]
        if min(over) < -1e-12:
            raise SystemExit("a rival is below a proven bound")
        best = min(best, max(over))
        if max(over) <= TARGET:
            return tol, ""
    return None, f"never, at best {best:.0e}"


def compare(name: str, betas: int, alphas: int, runs: int, rivals) -> None:
    X, y = data_of(name)
    first = sparse_svm_path(X, y, betas=betas, alphas=alphas, smoothing=0.0, intercept="none")
    pairs = [(step.parameters["alpha"], step.parameters["beta"]) for step in first.steps]
    fine = sparse_svm_path(X, y, betas=betas, alphas=alphas, smoothing=0.0, intercept="none", tol=FINE)
    bounds = [step.primal - step.gap for step in fine.steps]

    def path():
        return sparse_svm_path(X, y, betas=betas, alphas=alphas, smoothing=0.0, intercept="none")

    seconds = []
    for _ in range(runs):
        began = time.process_time()
        path()
        seconds.append(time.process_time() - began)
    mine = statistics.median(seconds)
    shape = f"{X.shape[0]} x {X.shape[1]}"
    print(
        f"{name} ({shape}): screenpath {mine:.3f} s, {len(pairs)} pairs, all certified: {first.certified}", flush=True
    )
    cap = max(CAP * mine, LEAST)
    for who in rivals:
        if who == "skglm" and sp.issparse(X):
            continue
        walked(RIVALS[who], X, y, pairs[:2], 1e-2, cap)  # compiled once
        tol, why = loosest(RIVALS[who], X, y, pairs, bounds, cap)
        if tol is None:
            print(f"    {who}: {why}, > {cap / mine:.0f} x" if "cap" in why else f"    {who}: {why}", flush=True)
            continue
        ratios, theirs = [], []
        for _ in range(runs):
            began = time.process_time()
            path()
            mine, began = time.process_time() - began, time.process_time()
            walked(RIVALS[who], X, y, pairs, tol, np.inf)
            theirs.append(time.process_time() - began)
            ratios.append(theirs[-1] / mine)
        print(
            f"    {who}: {statistics.median(theirs):.2f} s (tol {tol:.0e}), {statistics.median(ratios):.1f} x",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="SET", help=f"instead of {', '.join(SETS)}; NxP is made")
    parser.add_argument("--rivals", default=",".join(RIVALS))
    parser.add_argument("--betas", type=int, default=5)
    parser.add_argument("--alphas", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    one_thread.require()
    warnings.simplefilter("ignore")  # of rivals that do not converge: the judge says so
    for name in options.only or SETS:
        try:
            compare(name, options.betas, options.alphas, options.runs, options.rivals.split(","))
        except Missing as missing:
            print(f"{name}: left out, {missing}")


if __name__ == "__main__":
    main()
