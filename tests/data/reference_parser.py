"""A slow, obviously correct reader of LIBSVM text, to compare the fast one with."""

import re

import numpy as np

CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


WORD = re.compile(r"[^\W\d_][^:,]*")
NO_WORDS = {"nan", "inf", "infinity"}


def parse(text: bytes, zero_based: bool = False):
    """Return (rows, faulty lines): rows as (label, [(index, value), ...]), lines numbered from 1.

    The first line without another fault settles whether labels are numbers or words; the others have to be so too.
    """
    rows, faults, kind = [], [], None
    for number, line in enumerate(text.split(b"\n"), start=1):
        text_part = line.split(b"#")[0]
        tokens = text_part.split()
        if CONTROL.search(text_part):
            faults.append(number)
        elif tokens:
            row = _row(tokens, 0 if zero_based else 1, text_part != line and text_part == text_part.rstrip())
            if row is not None and kind is None:
                kind = type(row[0])
            if row is None or type(row[0]) is not kind:
                faults.append(number)
            else:
                rows.append(row)
    return rows, faults


def _label(token, commented):
    if NUMBER.fullmatch(token):
        value = float(token)
        return value if np.isfinite(value) else None
    try:
        word = token.decode()
    except UnicodeDecodeError:
        return None
    good = WORD.fullmatch(word) and word.isprintable() and word.lower() not in NO_WORDS and not commented
    return word if good else None


def _row(tokens, smallest, commented):
    label = _label(tokens[0], commented and len(tokens) == 1)
    if label is None:
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
    return label, pairs
