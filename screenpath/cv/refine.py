"""Where the certified bound needs more: closer solutions at the points there are, or points between them."""

from __future__ import annotations

from screenpath.cv.certify import ErrorBounds

TIGHTER, FLOOR = 1e-3, 1e-12  # factor from one accuracy to the next, and the last relative gap that is tried


def refine(certified: ErrorBounds, target: float, budget: int, tol: float, solve) -> int:
    """Make the bound reach a target, if it can be.

    Where a solution is too inaccurate to decide enough held-out samples at its own C, no neighbour helps: it is solved
    again, closer. Otherwise the weakest segments are divided, all of them at once.

    Parameters
    ----------
    certified : ErrorBounds
        Brought up to date by ``solve``.
    target : float
        Difference of best error and lower bound.
    budget : int
        Grid points that may be added.
    tol : float
        Relative gap of the solutions so far.
    solve : callable
        ``solve(points, tol)`` solves the values of C for all folds and updates ``certified``; it returns whether there
        was time for all of them.

    Returns
    -------
    int
        Points added.
    """
    added, solved = 0, dict.fromkeys(certified.grid, tol)
    while certified.difference > target:
        loose = certified.loose(target)
        if loose and tol > FLOOR and all(solved[C] <= tol for C in loose):
            tol = max(TIGHTER * tol, FLOOR)
        points = [C for C in loose if solved[C] > tol]
        if not points:
            points = new_points(certified, target, budget - added)
            added += len(points)
        if not points:
            break
        if not solve(points, tol):
            break
        solved.update(dict.fromkeys(points, tol))
    return added


def new_points(certified: ErrorBounds, target: float, limit: int) -> list[float]:
    """Return where the grid should be finer, increasing: one point in each of the weakest segments, ``limit`` at most.

    The point at which the bound is weakest, kept off the ends of its segment by a quarter of its width in log C. There
    is none where no segment is weak or can be divided.
    """
    found: list[float] = []
    for segment in certified.weak(target):
        ratio = segment.high / segment.low
        point = min(max(segment.weakest, segment.low * ratio**0.25), segment.high / ratio**0.25)
        if ratio > 1.0 + 1e-9 and len(found) < limit:
            found.append(float(point))
    return sorted(found)
