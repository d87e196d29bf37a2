"""A slow, obviously correct reader of LIBSVM text, to compare the fast one with."""

import re

import numpy as np

CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def parse(text: bytes, zero_based: bool = False):
    """Return (rows, faulty lines): rows as (label, [(index, value), ...]), lines numbered from 1."""
    rows, faults = [], []
    for number, line in enumerate(text.split(b"\n"), start=1):
        text_part = line.split(b"#")[0]
        tokens = text_part.split()
        if CONTROL.search(text_part):
            faults.append(number)
        elif tokens:
            row = _row(tokens, 0 if zero_based else 1)
            if row is None:
                faults.append(number)
            else:
                rows.append(row)
    return rows, faults


def _row(tokens, smallest):
    if not NUMBER.fullmatch(tokens[0]) or not np.isfinite(float(tokens[0])):
        return None
    pairs, previous = [], -1
    for token in tokens[1:]:
        if token.startswith(b"qid:"):
            continue
        match = re.fullmatch(rb"(\+?\d+|-0+):(\S+)", token)
        if match is None or not NUMBER.fullmatch(match[2]) or not np.isfinite(float(match[2])):
            return None
        index = int(match[1])
        if index < smallest or index <= previous or len(match[1].lstrip(b"+-0")) > 18:
            return None
        previous = index
        pairs.append((index, float(match[2])))
    return float(tokens[0]), pairs
