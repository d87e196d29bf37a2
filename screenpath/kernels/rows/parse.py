"""Byte parser for LIBSVM text. Numbers are correctly rounded, as by Python's ``float``.

Decimal to binary: exact arithmetic for short numbers (Clinger 1990), else the 128-bit product of Lemire 2021
("Number parsing at a gigabyte per second"); the few tokens neither decides are handed back to the caller.

Also a writer of fixed-point numbers, for generated sets that are too large for memory.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import kernel

# Fault codes; screenpath.data.words.faults has the words for each.
LABEL, INDEX, INDEX_ZERO, INDEX_NEGATIVE, INDEX_HUGE, UNSORTED, DUPLICATE = range(1, 8)
NO_VALUE, VALUE, NO_COLON, CONTROL = range(8, 12)

LONGEST = 32  # bytes that one cell can take at most when written: index, colon, number, blank
INDEX_DIGITS = 18  # an index with more digits is a fault: 19 of them can lie beyond int64
EXACT_DIGITS = 18  # a decimal number with more digits is bracketed by its first ones
EXACT_POWERS = 10.0 ** np.arange(23)  # powers of ten that are exact in float64


def _powers_of_five() -> np.ndarray:
    """Return the leading 128 bits of 5**q for q = -342 .. 308, high and low halves."""
    table = np.empty((651, 2), dtype=np.uint64)
    for q in range(-342, 309):
        power = 5 ** abs(q)
        bits = power.bit_length()
        if q >= 0:
            value = power << (128 - bits) if bits <= 128 else power >> (bits - 128)
        else:
            value = (1 << (bits + 127)) // power + 1  # the reciprocal, rounded up
            value >>= max(value.bit_length() - 128, 0)
        table[q + 342] = value >> 64, value & (2**64 - 1)
    return table


POWERS_OF_FIVE = _powers_of_five()


class Lines(NamedTuple):
    """What is written of the lines of a block, with room for all of them."""

    labels: np.ndarray  # labels, values: float64; ``label_bits`` and ``bits`` are the same memory as uint64
    label_bits: np.ndarray
    indptr: np.ndarray  # int64; ``indptr[r + 1]``: entries up to and including row ``r``
    values: np.ndarray
    bits: np.ndarray
    indices: np.ndarray
    # int64 of shape (h, 3). Tokens left to the caller: slot in ``values`` (or ``-1 - row`` for a label, which may be a
    # word), start and end
    hard: np.ndarray

    @classmethod
    def of(cls, labels, indptr, values, indices, hard) -> "Lines":
        return cls(labels, labels.view(np.uint64), indptr, values, values.view(np.uint64), indices, hard)


@kernel(leaf=True)
def _product(a, b):
    """Return high and low half of the 128-bit product of two uint64."""
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    a_low, a_high, b_low, b_high = a & mask, a >> shift, b & mask, b >> shift
    low, middle = a_low * b_low, a_high * b_low
    middle2, high = a_low * b_high, a_high * b_high
    carry = (low >> shift) + (middle & mask) + (middle2 & mask)
    return high + (middle >> shift) + (middle2 >> shift) + (carry >> shift), a * b


@kernel(leaf=True)
def _to_bits(digits, q, powers):
    """Return the bits of the float64 nearest to ``digits * 10**q`` (digits > 0), and whether they are decided."""
    if q < -342 or q > 308:
        return np.uint64(0), False
    one = np.uint64(1)
    w = np.uint64(digits)
    zeros = np.int64(0)
    while w >> np.uint64(63) == np.uint64(0):
        w <<= one
        zeros += 1
    high, low = _product(w, powers[q + 342, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        second, _ = _product(w, powers[q + 342, 1])
        low = low + second
        if low < second:
            high += one
    if low == np.uint64(0xFFFFFFFFFFFFFFFF) and (q < -27 or q > 55):
        return np.uint64(0), False
    upper = np.int64(high >> np.uint64(63))
    drop = np.uint64(upper + 9)
    mantissa = high >> drop
    exponent = (((152170 + 65536) * q) >> 16) + 63 + upper - zeros + 1023
    if exponent <= 0 or exponent >= 2046:
        return np.uint64(0), False  # subnormal, or near overflow
    if low <= one and -4 <= q <= 23 and mantissa & np.uint64(3) == one and (mantissa << drop) == high:
        mantissa &= ~one  # halfway between two floats: to even
    mantissa = (mantissa + (mantissa & one)) >> one
    if mantissa >= np.uint64(1 << 53):
        mantissa = np.uint64(1 << 52)
        exponent += 1
    return (mantissa & np.uint64((1 << 52) - 1)) | (np.uint64(exponent) << np.uint64(52)), True


@kernel(leaf=True)
def _token_end(text, at):
    """Return the end of the token at ``at``: white space, a control byte, a colon or a comment ends it."""
    while text[at] > 32 and text[at] != 58 and text[at] != 35:
        at += 1
    return at


@kernel(leaf=True)
def _control(byte):
    """Tell whether a byte cannot stand in text: it is below the space and not white space."""
    return byte < 32 and (byte < 9 or byte > 13)


@kernel(leaf=True)
def _word_end(text, at):
    """Return the end of a label that may be a word; ``at`` if there is none.

    A word begins with a letter (or a byte beyond ASCII) and ends at white space. It holds no colon, comma, comment or
    control byte.
    """
    begin, first = at, text[at]
    if first < 65 or 90 < first < 97 or 122 < first < 128:
        return at
    while text[at] > 32 and text[at] != 58 and text[at] != 44 and text[at] != 35:
        at += 1
    return begin if text[at] > 32 or _control(text[at]) else at


@kernel(leaf=True)
def _digits(text, at, value):
    """Append the decimal digits at ``at`` to ``value`` (wrapping beyond 18 of them); return it and their end."""
    while True:
        digit = np.int64(text[at]) - 48
        if digit < 0 or digit > 9:
            return value, at
        value = value * 10 + digit
        at += 1


@kernel(leaf=True)
def _long_to_bits(text, at, q, powers):
    """Return the bits of a number with many digits, and whether they are decided.

    Its first 18 digits, from ``at`` on, times ``10**q`` bound it from below, the same plus one unit in the last
    of them from above: rounding is monotone, so where both round to one float, the number does.
    """
    lead, taken = np.int64(0), 0
    while taken < EXACT_DIGITS:
        if text[at] != 46:
            lead = lead * 10 + np.int64(text[at]) - 48
            taken += 1
        at += 1
    below, below_decided = _to_bits(lead, q, powers)
    above, above_decided = _to_bits(lead + 1, q, powers)
    return below, below_decided and above_decided and below == above


@kernel(leaf=True)
def _number(text, at, powers, exact, slot, values, bits):
    """Parse a decimal number into ``values[slot]`` (``bits`` is the same memory as uint64).

    Returns one past the last byte read, and 0: no number; 1: stored; 2: the caller has to find the float.
    """
    negative = text[at] == 45
    if negative or text[at] == 43:
        at += 1
    first = at
    while text[at] == 48:
        at += 1
    start = at  # the first digit that is not 0
    digits, at = _digits(text, at, np.int64(0))
    count, seen, q = at - start, at - first, np.int64(0)
    if text[at] == 46:
        at += 1
        point = at
        if count == 0:
            while text[at] == 48:
                at += 1
            start = at
        digits, end = _digits(text, at, digits)
        count += end - at
        seen += end - point
        at = end
        q = point - at
    if seen == 0:
        return at, 0
    if text[at] == 101 or text[at] == 69:
        at += 1
        minus = text[at] == 45
        if minus or text[at] == 43:
            at += 1
        begin = at
        e, at = _digits(text, at, np.int64(0))
        if at == begin:
            return at, 0
        if at - begin > 9:
            return at, 2
        q += -e if minus else e
    if count > EXACT_DIGITS:
        found, decided = _long_to_bits(text, start, q + count - EXACT_DIGITS, powers)
        if not decided:
            return at, 2
        bits[slot] = found | (np.uint64(1) << np.uint64(63)) if negative else found
        return at, 1
    if digits == 0:
        value = 0.0
    elif digits <= 9007199254740992 and -22 <= q <= 22:
        value = np.float64(digits)
        value = value / exact[-q] if q < 0 else value * exact[q]
    else:
        found, decided = _to_bits(digits, q, powers)
        if not decided:
            return at, 2
        bits[slot] = found | (np.uint64(1) << np.uint64(63)) if negative else found
        return at, 1
    values[slot] = -value if negative else value
    return at, 1


@kernel(leaf=True)
def _blank(text, at):
    """Skip white space inside a line: space, tab, carriage return, vertical tab, form feed."""
    while text[at] == 32 or (9 <= text[at] <= 13 and text[at] != 10):
        at += 1
    return at


@kernel(leaf=True)
def _index_fault(text, start, at):
    """Name the fault of a feature whose index did not end in a colon."""
    end = _token_end(text, start)
    if _control(text[end]):
        return CONTROL, end, end + 1
    return (INDEX if text[end] == 58 and end > start else NO_COLON), start, max(end, at)


@kernel(leaf=True)
def _line(text, at, word, smallest, powers, row, nnz, lines, n_hard, seen):
    """Parse one line, from its label to its newline (every line of the text has one).

    ``word`` is the end of a label that may be a word, 0 if it must be a number. Returns ``at, nnz, n_hard``, then 0 or
    the code of the fault, and start and end of the token at fault.
    """
    (labels, label_bits, _, values, bits, indices, hard), (fives, exact), start = lines, powers, at
    if word > 0:
        at, outcome = word, 2
    else:
        at, outcome = _number(text, at, fives, exact, row, labels, label_bits)
    if outcome == 0 or (text[at] > 32 and text[at] != 35):
        end = _token_end(text, start)
        if _control(text[end]):
            return at, nnz, n_hard, CONTROL, end, end + 1
        return at, nnz, n_hard, LABEL, start, max(end, start + 1)
    if outcome == 2:
        hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2] = -row - 1, start, at
        n_hard += 1
    previous = np.int64(-1)
    while True:
        at = _blank(text, at)
        if text[at] == 10 or text[at] == 35:
            if previous > seen[1]:
                seen[1] = previous
            return at, nnz, n_hard, 0, 0, 0
        start = at
        if text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100 and text[at + 3] == 58:
            seen[0] = 1  # qid:N
            at += 4
            while text[at] > 32 and text[at] != 35:
                at += 1
            continue
        minus = text[at] == 45
        if minus or text[at] == 43:
            at += 1
        begin = at
        index, at = _digits(text, at, np.int64(0))
        if text[at] != 58 or at == begin:
            code, start, end = _index_fault(text, start, at)
            return at, nnz, n_hard, code, start, end
        if index <= previous or index < smallest or minus or at - begin > INDEX_DIGITS:
            while text[begin] == 48:
                begin += 1
            if at - begin > INDEX_DIGITS:
                code = INDEX_HUGE
            elif minus and index > 0:
                code = INDEX_NEGATIVE
            elif index < smallest:
                code = INDEX_ZERO
            elif index <= previous:
                code = DUPLICATE if index == previous else UNSORTED
            else:
                code = 0
            if code != 0:
                return at, nnz, n_hard, code, start, at
        previous = index
        at += 1
        if _control(text[at]):
            return at, nnz, n_hard, CONTROL, at, at + 1
        if text[at] <= 32 or text[at] == 35:
            return at, nnz, n_hard, NO_VALUE, start, at
        begin = at
        at, outcome = _number(text, at, fives, exact, nnz, values, bits)
        if outcome == 0 or (text[at] > 32 and text[at] != 35):
            while text[at] > 32:
                at += 1
            if _control(text[at]):
                return at, nnz, n_hard, CONTROL, at, at + 1
            return at, nnz, n_hard, VALUE, begin, at
        if outcome == 2:
            hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2] = nnz, begin, at
            n_hard += 1
        indices[nnz] = index
        nnz += 1


@kernel(leaf=True)
def parse_lines(text, stop, smallest, powers, written, faults, seen):
    """Parse the whole lines in ``text[:stop]``, which ends with a newline; entries of a block are numbered from 0.

    ``smallest`` is the smallest index allowed: 1, or 0 for zero-based files. ``powers`` are ``POWERS_OF_FIVE`` and
    ``EXACT_POWERS``. ``faults``, int64 of shape (f, 4), receives code, line of the block (from 0), start and end of the
    token; a faulty line gives no row. ``seen``, int64 of shape (2,), is updated: whether a ``qid`` was seen; largest
    index.

    Returns ``rows, nnz, lines, n_hard, n_faults``. Parsing ends early when ``faults`` is full.
    """
    at, rows, nnz, lines, n_hard, n_faults, word, indptr = 0, 0, 0, 0, 0, 0, 0, written.indptr
    while at < stop and n_faults < faults.shape[0]:
        at = _blank(text, at)
        if text[at] != 10 and text[at] != 35:
            at, found, hard_found, code, first, last = _line(
                text, at, word, smallest, powers, rows, nnz, written, n_hard, seen
            )
            if code == LABEL and word == 0:  # out of the way of numbers: the line again, from behind the word
                word = _word_end(text, first)
                if word > first:
                    at = first
                    continue
            word = 0
            if code == 0:
                nnz, n_hard = found, hard_found
                rows += 1
                indptr[rows] = nnz
            else:
                faults[n_faults, 0], faults[n_faults, 1] = code, lines
                faults[n_faults, 2], faults[n_faults, 3] = first, last
                n_faults += 1
        while text[at] != 10:  # a comment, or what is left of a faulty line
            at += 1
        lines += 1
        at += 1
    return rows, nnz, lines, n_hard, n_faults


@kernel(leaf=True)
def _unusual_end(text, at):
    """Return the end of a number at ``at``, or ``at`` itself if it is written as Python does, in few digits."""
    begin = at
    if text[at] == 45:
        at += 1
    first = at
    _, at = _digits(text, at, np.int64(0))
    usual = 0 < at - first <= 15 and (text[first] != 48 or at == first + 1)
    if text[at] == 46:
        point = at
        _, at = _digits(text, at + 1, np.int64(0))
        usual = usual and at > point + 1 and text[at - 1] != 48 and at - first <= 16
        usual = usual and (text[first] != 48 or text[point + 1] != 48 or text[point + 2] != 48)
    elif text[first] == 48 and first > begin:  # -0
        usual = False
    if usual and (text[at] <= 32 or text[at] == 35):
        return begin
    while text[at] > 32 and text[at] != 35:
        at += 1
    return at


@kernel(leaf=True)
def unusual_labels(text, starts, recent, found):
    """Find the labels not written as Python writes their numbers, most of them once; return how many.

    ``starts`` are those of the lines. ``recent``, int64 of shape (r, 2), is a cache of tokens, which are found again
    only if another has taken their place; r is a power of 2. ``found``, int64 of shape (lines, 3), receives row, start
    and end of a token.
    """
    recent[:] = 0
    count, row = 0, 0
    for line in range(starts.size):
        begin = _blank(text, starts[line])
        if text[begin] == 10 or text[begin] == 35:
            continue
        row += 1
        first = text[begin]
        if not (48 <= first <= 57 or first == 43 or first == 45 or first == 46):
            continue
        end = _unusual_end(text, begin)
        if end == begin:
            continue
        place = np.int64(0)
        for at in range(begin, end):
            place = (place * 31 + text[at]) & (recent.shape[0] - 1)
        other, stop = recent[place, 0], recent[place, 1]
        same = stop - other == end - begin
        if same:
            for k in range(end - begin):
                same = same and text[other + k] == text[begin + k]
        if not same:
            recent[place, 0], recent[place, 1] = begin, end
            found[count, 0], found[count, 1], found[count, 2] = row - 1, begin, end
            count += 1
    return count


@kernel(leaf=True)
def _whole(number, at, out):
    """Write the digits of a whole number >= 0 at ``out[at]``; return the position after them."""
    digits, rest = 1, number // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for k in range(digits - 1, -1, -1):
        out[at + k] = 48 + number % 10
        number //= 10
    return at + digits


@kernel(leaf=True)
def fixed_lines(X, signs, out):
    """Write rows as LIBSVM text with four decimals, cells that round to 0 left out; return the bytes written.

    ``signs`` are the labels -1 and 1; ``out`` (uint8) has at least ``n * (p + 1) * LONGEST`` bytes.
    """
    at = 0
    for i in range(X.shape[0]):
        if signs[i] < 0.0:
            out[at] = 45
            at += 1
        out[at] = 49
        at += 1
        for j in range(X.shape[1]):
            number = np.int64(np.rint(abs(X[i, j]) * 10000.0))
            if number == 0:
                continue
            out[at] = 32
            at = _whole(j + 1, at + 1, out)
            out[at] = 58
            at += 1
            if X[i, j] < 0.0:
                out[at] = 45
                at += 1
            at = _whole(number // 10000, at, out)
            fraction = number % 10000
            if fraction > 0:
                out[at] = 46
                out[at + 1] = 48 + fraction // 1000
                out[at + 2] = 48 + fraction // 100 % 10
                out[at + 3] = 48 + fraction // 10 % 10
                out[at + 4] = 48 + fraction % 10
                at += 5
        out[at] = 10
        at += 1
    return at


def warm_up():
    text = np.frombuffer(b"1 1:2.5\n", dtype=np.uint8).copy()
    unusual_labels(
        text, np.zeros(1, dtype=np.int64), np.zeros((2, 2), dtype=np.int64), np.empty((1, 3), dtype=np.int64)
    )
    few, hard = np.zeros(3, dtype=np.int64), np.empty((2, 3), dtype=np.int64)
    written = Lines.of(np.empty(2), few, np.empty(2), few.copy(), hard)
    faults = np.empty((1, 4), dtype=np.int64)
    parse_lines(text, text.size, 1, (POWERS_OF_FIVE, EXACT_POWERS), written, faults, np.zeros(2, dtype=np.int64))
    fixed_lines(np.ones((1, 1)), np.ones(1), np.empty(64, dtype=np.uint8))
