"""Splitting the dual variables of a box model: fixed ones, survivors, and what the survivors' solution changes.

``ends`` (int8) has -1 where ``theta`` is at its lower end, 1 at its upper end, else 0.
"""

import numpy as np

from screenpath.kernels import at, kernel

ROWS = 1024  # what sums over all rows are formed from, here, in `box` and in `compiled`, where threads share them
EVERY = 0x0101010101010101  # the low bits of eight statuses: set in all of them where none is 0


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"}, leaf=True)
def box_ends(theta, lo, hi, ends, start, stop):
    """Write the ``ends`` of ``theta``; return ``n_R`` (equal ends count there), ``n_L``, and how many are not 0."""
    n_R, n_L, nonzero = 0.0, 0.0, 0.0  # counted as what they are compared as: the loop vectorises better
    for i in range(at(start), at(stop)):
        R = 1.0 if theta[i] == lo[i] else 0.0
        L = 1.0 if theta[i] == hi[i] else 0.0
        L = L if R == 0.0 else 0.0
        ends[i] = np.int8(L - R)
        n_R += R
        n_L += L
        nonzero += 1.0 if theta[i] != 0.0 else 0.0
    return int(n_R), int(n_L), int(nonzero)


@kernel(leaf=True)
def box_rests(theta, lo, hi):
    """Tell whether no dual variable is at an end of its box other than 0; usually one of the first ones is."""
    for i in range(theta.size):
        value = theta[i]
        if value != 0.0 and (value == lo[i] or value == hi[i]):
            return False
    return True


@kernel(fastmath={"reassoc", "contract"})
def box_line(C1, theta1, C2, theta2, C, lo, hi, signs, c, apart):
    """Return the dual point at ``C`` on the line through ``alpha = C theta`` of two others, clipped to its box.

    A variable at an end at ``C2`` stays there. Also returns ``c . theta``, and writes to ``apart`` by how much each
    variable is off the line, times its sign: 0 for most.
    """
    theta, share, linear = np.empty(theta2.size), (C - C2) / (C2 - C1), 0.0
    for i in range(theta2.size):
        known, low, high, end = C2 * theta2[i], lo[i], hi[i], theta2[i]
        line = (known + share * (known - C1 * theta1[i])) / C
        value = line if line > low else low
        value = value if value < high else high
        value = value if (low < end) & (end < high) else end
        theta[i] = value
        apart[i] = signs[i] * (value - line) if theta1[i] != end else 0.0
        linear += c[i] * value
    return theta, linear


@kernel(fastmath={"contract"})
def sum_line(C1, total1, C2, total2, C):
    """Return the sum over rows of the point on the line through two others, before it is put into its box."""
    total, share = np.empty(total2.size), (C - C2) / (C2 - C1)
    for j in range(total2.size):
        known = C2 * total2[j]
        total[j] = (known + share * (known - C1 * total1[j])) / C
    return total


@kernel
def margin_line(C1, margins1, C2, margins2, C):
    """Return the products with ``w`` at ``C`` on the line through those of two other points."""
    margins, share = np.empty(margins2.size), (C - C2) / (C2 - C1)
    for i in range(margins2.size):
        margins[i] = margins2[i] + share * (margins2[i] - margins1[i])
    return margins


@kernel
def box_closed_form(c, lo, hi):
    """Return the optimal dual variables for small C: ``hi`` where ``c > 0``, else ``lo``."""
    s = np.empty(c.size)
    for i in range(c.size):
        low, high = lo[i], hi[i]  # both are read, so that the loop vectorises
        s[i] = high if c[i] > 0.0 else low
    return s


@kernel
def box_part(status, lo, hi, c, theta, ell):
    """Separate the fixed dual variables from the survivors, in blocks of ``ROWS`` rows; ``ell`` is ``c . theta``.

    Returns the survivors, ``c . theta`` of the fixed variables, once at their ends, and the fixed variables that
    ``theta`` has elsewhere.
    """
    index, open_rows = np.empty(status.size, dtype=np.int64), np.empty(status.size, dtype=np.int64)
    ends = np.empty(status.size, dtype=np.int8)
    box_ends(theta, lo, hi, ends, 0, status.size)
    k, m, linear = 0, 0, ell
    for s in range(0, status.size, ROWS):
        e = min(s + ROWS, status.size)
        n, count, term, _ = part_rows(status, ends, lo, hi, c, theta, index, open_rows, k, s, e)
        for r in range(s, s + count):
            if status[open_rows[r]] != 0:
                open_rows[m] = open_rows[r]
                m += 1
        k, linear = k + n, linear + term
    return index[:k].copy(), linear, open_rows[:m].copy()


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"}, leaf=True, inner=True)
def part_rows(status, ends, lo, hi, c, theta, index, open_rows, first, start, stop):
    """List the open rows: survivors, and fixed rows that are not at their end yet.

    Survivors are written to ``index`` from ``first`` on, which is overwritten from ``start`` on if ``first`` is not
    beyond it; open rows to ``open_rows`` from ``start``, a multiple of eight, on. ``first`` is at most ``start``.

    Returns how many survive and how many are open, the change of ``c . theta`` when the survivors leave it and the
    others go to their end, and how many do go.
    """
    words, known = status[: stop // 8 * 8].view(np.int64), ends[: stop // 8 * 8].view(np.int64)
    few, n = start, start
    for q in range(at(start // 8), at(words.size)):  # most eights have nothing open; no branches, here and below
        index[at(few)] = q
        few += ((words[q] & EVERY) != EVERY) | (words[q] != known[q])
    for r in range(at(start), at(few)):
        for i in range(at(8 * index[r]), at(8 * index[r] + 8)):
            open_rows[at(n)] = i
            n += (status[i] == 0) | (status[i] != ends[i])
    for i in range(at(max(8 * words.size, start)), at(stop)):
        open_rows[at(n)] = i
        n += (status[i] == 0) | (status[i] != ends[i])
    k, moved, linear = first, 0, 0.0
    for r in range(at(start), at(n)):
        i = at(open_rows[r])
        end = hi[i] if status[i] > 0 else lo[i]
        value = end if status[i] != 0 else 0.0
        linear += c[i] * (value - theta[i])
        moved += (status[i] != 0) & (end != theta[i])
        index[at(k)] = open_rows[r]
        k += status[i] == 0
    return k - first, n - start, linear, moved


@kernel(leaf=True)
def box_moves(moved, status, lo, hi, signs, theta, step):
    """Put fixed variables at their ends; add the changes, times their signs, to ``step``."""
    for r in range(moved.size):
        i = moved[r]
        end = hi[i] if status[i] > 0 else lo[i]
        step[i] += signs[i] * (end - theta[i])
        theta[i] = end


@kernel(leaf=True)
def box_survivors(index, C, c, lo, hi, norms, theta, products, out, first):
    """Write survivors' ``c``, ``C lo``, ``C hi``, norms, ``C theta`` and products to columns of ``out``."""
    last = first + index.size
    kink, low, high, norm = out[0, first:last], out[1, first:last], out[2, first:last], out[3, first:last]
    start, product = out[4, first:last], out[5, first:last]
    for k in range(at(index.size)):
        i = at(index[k])
        kink[k], low[k], high[k] = c[i], C * lo[i], C * hi[i]
        norm[k], start[k], product[k] = norms[i], C * theta[i], products[i]


@kernel(leaf=True)
def box_lift(theta, index, alpha, C, lo, hi):
    """Write the survivors' ``alpha / C``, clipped to their box, to their places in ``theta``."""
    for r in range(index.size):
        i = index[r]
        theta[i] = min(max(alpha[r] / C, lo[i]), hi[i])


@kernel(leaf=True)
def changes(listed, theta, held, lo, hi, signs, ends, step, found):
    """Write the changes of the ``listed`` rows from ``held``, times their signs, to their places in ``step``.

    ``ends`` is brought up to date with ``theta``; ``found`` receives the rows that have changed. Returns how many have,
    and the changes of the three counts of :func:`box_ends`.
    """
    k, n_R, n_L, nonzero = 0, 0, 0, 0
    for r in range(listed.size):
        found[at(k)] = r  # kept where the next one does not overwrite it
        k += theta[at(listed[r])] != held[r]
    for q in range(at(k)):
        r = at(found[q])
        i = at(listed[r])
        value, before = theta[i], ends[i]
        end = -1 if value == lo[i] else (1 if value == hi[i] else 0)
        n_R += int(end < 0) - int(before < 0)
        n_L += int(end > 0) - int(before > 0)
        nonzero += int(value != 0.0) - int(held[r] != 0.0)
        ends[i], step[i], found[q] = end, signs[i] * (value - held[r]), listed[r]
    return k, n_R, n_L, nonzero


@kernel(leaf=True)
def shares(size, n_R, n_L, screened_R, screened_L):
    """Return n_E, the number of survivors, the rejection ratio and the screening rate."""
    fixed, ends = screened_R + screened_L, n_R + n_L
    return size - ends, size - fixed, fixed / size, fixed / ends if ends > 0 else 0.0


def warm_up():
    a, status, signs = np.ones(2), np.zeros(2, dtype=np.int8), np.ones(2, dtype=np.int8)
    index = np.zeros(2, dtype=np.int64)
    box_ends(a, a, a, status.copy(), 0, 2)
    box_rests(a, a, a)
    box_line(0.5, a, 1.0, a, 2.0, a, a, signs, a, a.copy())
    sum_line(0.5, a, 1.0, a, 2.0)
    margin_line(0.5, a, 1.0, a, 2.0)
    box_closed_form(a, a, a)
    box_part(status, a, a, a, a, 1.0)
    box_moves(index, status, a, a, signs, a.copy(), a.copy())
    box_survivors(index, 1.0, a, a, a, a, a, a, np.empty((6, 2)), 0)
    box_lift(a.copy(), index, a, 1.0, a, a)
    changes(index, a, a, a, a, signs, status.copy(), a.copy(), index.copy())
    shares(2, 1, 0, 1, 0)
