"""What conditioning subtracts from the norms and the centres of the balls of SIFS (Hong 2019, Lemmas 5 and 6).

It is subtracted line by line for the screened lines (``drop_*``), or summed again over those that stay (``keep_*``);
the costs tell which is cheaper. Layout of all arrays: see ``kernels/problem/sparse.py``.
"""

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem.sparse import add_column


@kernel(leaf=True)
def line_cost(indptr, line, length):
    """Return the cost of a line's traversal: a full one needs no indices and runs about four times as fast."""
    count = indptr[line + 1] - indptr[line]
    return 0.25 * count if count == length else 1.0 * count


@kernel(leaf=True)
def lines_cost(indptr, length, lines):
    """Return the cost of traversing lines, numbered in any class."""
    count = indptr.size - 1
    if indptr[count] == length * count:
        return 0.25 * length * lines.size
    total = 0.0
    for f in lines:
        total += line_cost(indptr, f % count, length)
    return total


@kernel(leaf=True)
def lines_size(indptr, lines):
    """Return how many values lines have, numbered in any class."""
    count, total = indptr.size - 1, 0
    for f in lines:
        total += indptr[f % count + 1] - indptr[f % count]
    return total


@kernel(fastmath=SUMS, leaf=True)
def drop_columns(columns, n, w, pending, twice, scores, row_part):
    """Take screened features out of the partial row norms and the scores; return the values touched.

    ``row_part`` has ``x^2 - m x`` for each feature; ``twice`` has ``m``, twice the coordinate from which distances
    count.
    """
    data, indices, indptr = columns
    d = indptr.size - 1
    touched = 0
    for f in pending:
        c = f // d
        base = c * n
        j = f - c * d
        value = w[f]
        start = indptr[j]
        full = indptr[j + 1] - start == n
        values, lines = data[start : indptr[j + 1]], indices[start : indptr[j + 1]]
        part, score = row_part[base : base + n], scores[base : base + n]
        m = twice[j]
        for r in range(values.size):
            x = np.float64(values[r])
            part[at(r) if full else at(lines[r])] -= x * (x - m)
        add_column(data, indices, start, indptr[j + 1], n, -value, score)
        touched += indptr[j + 1] - start
    return touched


@kernel(fastmath=SUMS, leaf=True)
def keep_columns(columns, n, w, keep, live, pending, twice, scores, row_part, known_keep, known_part):
    """As :func:`drop_columns`, by summing the row norms of the surviving features; return the values touched.

    The last sums stay in ``known_part`` with their features in ``known_keep``: the next step mostly keeps the same
    ones. They are sums from zero, whatever came before, and count as touched all the same: a resumed path does not have
    them.
    """
    data, indices, indptr = columns
    d = indptr.size - 1
    touched = 0
    for f in pending:
        if w[f] != 0.0:
            c = f // d
            j = f - c * d
            add_column(data, indices, indptr[j], indptr[j + 1], n, -w[f], scores[c * n : (c + 1) * n])
            touched += indptr[j + 1] - indptr[j]
    unknown = 0
    for f in range(keep.size):
        unknown += keep[f] != known_keep[f]
    if indptr[d] == n * d:
        touched += n * live.size
    else:
        for f in live:
            touched += indptr[f % d + 1] - indptr[f % d]
    if unknown == 0:
        for t in range(row_part.size):
            row_part[t] = known_part[t]
        return touched
    row_part[:] = 0.0
    for f in live:
        c = f // d
        j = f - c * d
        start, stop = indptr[j], indptr[j + 1]
        block, m = row_part[c * n : (c + 1) * n], twice[j]
        if stop - start == n:
            column = data[start:stop]
            for i in range(n):
                x = np.float64(column[i])
                block[i] += x * (x - m)
        else:
            for p in range(at(start), at(stop)):
                x = np.float64(data[p])
                block[at(indices[p])] += x * (x - m)
    for f in range(keep.size):
        known_keep[f] = keep[f]
    for t in range(row_part.size):
        known_part[t] = row_part[t]
    return touched


@kernel(forceinline=True, inner=True, leaf=True)
def from_centres(t, samples, theta, parts, status):
    """Return a screened dual variable's weight, and its distance from both balls' centres, ``parts`` of the first."""
    i = t % samples.n
    value = samples.high if status[t] > 0 else samples.low
    return samples.weights[i], value - parts[0] * samples.kinks[i] - parts[1] * theta[t], value - theta[t]


@kernel(leaf=True)
def drop_rows(rows, d, samples, theta, parts, status, pending, moves, col_part, col_total):
    """Take screened dual variables out of the column norms and move both centres, by ``moves``, to their values.

    ``col_total``, if not empty (with a free intercept), has the sum of each column over the surviving dual variables.
    """
    (data, indices, indptr), (move_first, move_second), n = rows, moves, samples.n
    for t in pending:
        c = t // n
        i = t - c * n
        weight, first, second = from_centres(t, samples, theta, parts, status)
        first, second = weight * first / n, weight * second / n
        start = indptr[i]
        full = indptr[i + 1] - start == d
        own = samples.labels[i]
        sign = own if samples.classes == 1 else -1
        values, lines = data[start : indptr[i + 1]], indices[start : indptr[i + 1]]
        for r in range(values.size):
            j = at(r) if full else at(lines[r])
            x = np.float64(values[r])
            square = weight * (x * x)
            f = at(c * d) + j
            col_part[f] -= square
            move_first[f] += sign * first * x
            move_second[f] += sign * second * x
            if samples.classes > 1:
                f = at(own * d) + j
                col_part[f] -= square
                move_first[f] += first * x
                move_second[f] += second * x
        for r in range(values.size if col_total.size > 0 else 0):
            col_total[at(r) if full else at(lines[r])] -= weight * values[r]


@kernel(fastmath=SUMS)
def keep_rows(columns, samples, theta, parts, status, live, active, moves, col_part):
    """As :func:`drop_rows`, by summing anew over the columns of the surviving features that are not proven active."""
    (data, indices, indptr), labels, n, classes = columns, samples.labels, samples.n, samples.classes
    d, (move_first, move_second) = indptr.size - 1, moves
    left, first, second = np.zeros(theta.size), np.zeros(theta.size), np.zeros(theta.size)
    for c in range(classes):
        for i in range(n):
            own, t = labels[i], c * n + i
            if classes > 1 and c == own:
                continue
            weight, e1, e2 = from_centres(t, samples, theta, parts, status)
            if status[t] == 0:
                left[t] += weight
                if classes > 1:
                    left[own * n + i] += weight
                continue
            e1, e2 = weight * e1 / n, weight * e2 / n
            if classes == 1:
                first[t], second[t] = own * e1, own * e2
            else:
                first[t] -= e1
                second[t] -= e2
                first[own * n + i] += e1
                second[own * n + i] += e2
    touched = 0
    for f in live:
        if active[f]:
            continue
        c = f // d
        j = f - c * d
        base = c * n
        start, stop = indptr[j], indptr[j + 1]
        norm, s1, s2 = 0.0, 0.0, 0.0
        if stop - start == n:
            column, share = data[start:stop], left[base : base + n]
            apart1, apart2 = first[base : base + n], second[base : base + n]
            for i in range(n):
                x = np.float64(column[i])
                norm += x * x * share[i]
                s1 += x * apart1[i]
                s2 += x * apart2[i]
        else:
            for p in range(at(start), at(stop)):
                k = at(base) + at(indices[p])
                x = np.float64(data[p])
                norm += x * x * left[k]
                s1 += x * first[k]
                s2 += x * second[k]
        col_part[f], move_first[f], move_second[f] = norm, s1, s2
        touched += stop - start
    return touched
