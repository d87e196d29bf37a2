"""Certificates of the corpus with something changed: an entry, a number, a code, a byte, an order or a claim."""

from __future__ import annotations

import json
import math
import struct
import zlib

import numpy as np

MAGIC = b"screenpath certificate 1\n"
CODES = {"f8": "<f8", "i8": "<i8", "u1": "|u1"}
EXTREMES = (
    0, 1, -1, 2, 0.0, -0.0, 0.5, 1.5, 5e-324, 1e-300, 1e300, math.inf, -math.inf, math.nan, None, True, False, "", "x",
    "free", "certified", "svm", "lad", "l1svm", "sparse-svm", "hinge", "none", "l2", "standard", [], {}, [1.0], 10**30,
)  # fmt: skip


class Frames:
    """The frames of a certificate: kinds, entries, and arrays by name."""

    def __init__(self, content: bytes):
        self.found, at = [], len(MAGIC)
        while at < len(content):
            size, _ = struct.unpack("<QI", content[at + 1 : at + 13])
            text, _, data = zlib.decompress(content[at + 13 : at + 13 + size]).partition(b"\n")
            entries, arrays, start = json.loads(text), {}, 0
            for name, kind, count in entries.pop("arrays"):
                arrays[name] = np.frombuffer(data, CODES[kind], count, start).copy()
                start += arrays[name].nbytes
            self.found.append([content[at : at + 1], entries, arrays])
            at += 13 + size

    @property
    def header(self) -> list:
        return self.found[0]

    @property
    def steps(self) -> list:
        return [frame for frame in self.found if frame[0] == b"S"]

    def packed(self) -> bytes:
        return MAGIC + b"".join(packed(*frame) for frame in self.found)


def packed(kind: bytes, entries: dict, arrays: dict, listed=None, data=None) -> bytes:
    """Return a frame; ``listed`` and ``data`` take the place of what the arrays say of themselves."""
    listed = [[name, a.dtype.str[1:], a.size] for name, a in arrays.items()] if listed is None else listed
    data = b"".join(a.tobytes() for a in arrays.values()) if data is None else data
    return framed(kind, zlib.compress(json.dumps({**entries, "arrays": listed}).encode() + b"\n" + data, 1))


def framed(kind: bytes, content: bytes) -> bytes:
    """Return a frame around any content, whose CRC is right."""
    return kind + struct.pack("<QI", len(content), zlib.crc32(kind + content)) + content


def near(rng, value: float) -> float:
    """Return a value near another one, or far from it."""
    draw = rng.random()
    if draw < 0.1:
        return float(rng.choice([0.0, -value, 1.0, math.nan, math.inf, -math.inf, 1e300, 5e-324]))
    if draw < 0.3:
        return math.nextafter(value, rng.choice([-math.inf, math.inf]))
    return value * (1.0 + rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-16.0, 0.0)) if value else float(rng.normal())


def places(entries) -> list:
    pairs = entries.items() if isinstance(entries, dict) else enumerate(entries[:3])
    found = []
    for key, value in pairs:
        found.append((entries, key))
        found += places(value) if isinstance(value, dict | list) else []
    return found


def mutant(content: bytes, rng, truth=None) -> tuple[str, bytes]:
    """Return what was changed, and the bytes after it.

    ``truth`` returns primal and gap of the steps of changed bytes, in fractions, or None: half of the mutants claim
    these, or numbers close to these, so that what decides is something else.
    """
    if rng.random() < 0.05:
        return _bytes(content, rng)
    frames = Frames(content)
    names = []
    for _ in range(1 + (rng.random() < 0.2)):
        change = (_entry, _array, _code, _number, _order, _list)[rng.choice(6, p=[0.22, 0.33, 0.25, 0.1, 0.05, 0.05])]
        names.append(change(frames, rng) or "nothing")
    if truth is not None and rng.random() < 0.5:
        names.append(_claim(frames, rng, truth))
    return " + ".join(names), frames.packed()


def _bytes(content: bytes, rng) -> tuple[str, bytes]:
    k, draw = int(rng.integers(len(content))), rng.random()
    if draw < 0.6:
        return f"byte {k}", content[:k] + bytes([content[k] ^ int(rng.integers(1, 256))]) + content[k + 1 :]
    if draw < 0.8:
        return f"cut at {k}", content[:k]
    return f"more at {k}", content[:k] + rng.bytes(int(rng.integers(1, 20))) + content[k:]


def _some(frames: Frames, rng) -> list:
    return frames.found[0 if rng.random() < 0.4 else int(rng.integers(len(frames.found)))]


def _entry(frames: Frames, rng) -> str:
    """Change an entry of a frame to something else of its kind, or of none."""
    entries = _some(frames, rng)[1]
    ways = places(entries)
    if not ways:
        return ""
    inside, key = ways[rng.integers(len(ways))]
    value, draw = inside[key], rng.random()
    if draw < 0.15 and isinstance(inside, dict):
        del inside[key]
        return f"without {key}"
    if draw < 0.6 and type(value) in (int, float):
        inside[key] = near(rng, value) if isinstance(value, float) else value + int(rng.choice([-1, 1]))
    elif draw < 0.65 and isinstance(inside, dict):
        inside[f"{key}x"] = inside.pop(key)
        return f"{key} renamed"
    else:
        inside[key] = EXTREMES[rng.integers(len(EXTREMES))]
    return f"{key} = {inside[key]!r:.40}"


def _array(frames: Frames, rng) -> str:
    """Change a number of an array, or how many there are."""
    arrays = _some(frames, rng)[2] or frames.steps[rng.integers(len(frames.steps))][2]
    names = [name for name in arrays if arrays[name].size]
    if not names:
        return ""
    name = str(rng.choice(names))
    array, draw = arrays[name], rng.random()
    k = int(rng.integers(array.size))
    if draw < 0.1:
        arrays[name] = np.delete(array, k) if draw < 0.05 else np.insert(array, k, array[k])
        return f"{name}: another size"
    if draw < 0.13:
        del arrays[name]
        return f"without {name}"
    if draw < 0.15:
        arrays[name] = array.astype("<i8" if array.dtype.kind == "f" and np.all(np.isfinite(array)) else "<f8")
        return f"{name}: another type"
    if array.dtype.kind == "f":
        array[k] = near(rng, float(array[k]))
    elif array.dtype.itemsize == 1:
        array[k] ^= 1 << rng.integers(8)
    else:
        array[k] += int(rng.choice([-1, 1, 100]))
    return f"{name}[{k}] = {array[k]}"


def _code(frames: Frames, rng) -> str:
    """Change a code of two bits, states together with the numbers of those between."""
    some = [frame for frame in frames.found if {"states", "claims"} & set(frame[2])]
    if not some:
        return _array(frames, rng)
    arrays = some[rng.integers(len(some))][2]
    name = str(rng.choice([name for name in ("states", "claims") if name in arrays]))
    array = arrays[name]
    if not array.size:
        return ""
    codes = (array[:, None] >> np.array([0, 2, 4, 6]) & 3).ravel()
    k, code = int(rng.integers(codes.size)), int(rng.integers(4))
    if name == "states" and "between" in arrays:
        place, between = int(np.count_nonzero(codes[:k] == 2)), arrays["between"]
        if codes[k] == 2 != code and place < between.size:
            between = np.delete(between, place)
        elif codes[k] != 2 == code:
            value = float(rng.choice([0.0, 1.0, -1.0, 0.5, math.nextafter(1.0, 2.0), -5e-324, codes[k]]))
            between = np.insert(between, min(place, between.size), value)
        arrays["between"] = between
    codes[k] = code
    four = codes.reshape(-1, 4).astype(np.uint8)
    arrays[name] = four[:, 0] | four[:, 1] << 2 | four[:, 2] << 4 | four[:, 3] << 6
    return f"{name}: code {k} = {code}"


def _number(frames: Frames, rng) -> str:
    """Change what a step claims: parameter, primal value, its error, gap; or the tolerance."""
    if rng.random() < 0.2:
        frames.header[1]["tol"] *= float(rng.choice([0.5, 2.0, 1e-3, 1e3, 1e5]))
        return "tol"
    entries = frames.steps[rng.integers(len(frames.steps))][1]
    names = [name for name, value in entries.items() if isinstance(value, float)]
    if not names:
        return ""
    name = str(rng.choice(names))
    entries[name] *= float(rng.choice([0.0, 0.5, 0.999, 1 - 1e-9, 1 + 1e-9, 1.001, 2.0, -1.0, 1e6]))
    return f"{name} = {entries[name]}"


def _order(frames: Frames, rng) -> str:
    a, b = rng.integers(len(frames.found), size=2)
    draw = rng.random()
    if draw < 0.3:
        frames.found[a], frames.found[b] = frames.found[b], frames.found[a]
    elif draw < 0.6:
        frames.found.insert(a, frames.found[b])
    elif draw < 0.9:
        del frames.found[a]
    else:
        frames.found[a][0] = bytes([rng.choice(list(b"HSNEX"))])
    return f"order of {a}, {b}"


def _list(frames: Frames, rng) -> str:
    """Swap something between two steps: of another one, it is as good as any."""
    one, two = (frames.steps[k] for k in rng.integers(len(frames.steps), size=2))
    part = 1 + int(rng.random() < 0.6)
    names = sorted(set(one[part]) & set(two[part]))
    if not names:
        return ""
    name = str(rng.choice(names))
    one[part][name], two[part][name] = two[part][name], one[part][name]
    return f"{name} of another step"


def _claim(frames: Frames, rng, truth) -> str:
    """Claim what is true of each step, or nearly."""
    found = truth(frames.packed())
    if found is None:
        return "nothing"
    factor = float(rng.choice([1.0, 1.0, 1 + 1e-9, 1 - 1e-9, 1 + 1e-6, 0.999, 1.001, 2.0]))
    largest = 0.0
    for k, entries, _ in ((entry[1]["step"], *entry[1:]) for entry in frames.steps):
        if k in found and found[k] is not None:
            primal, gap = found[k]
            entries["primal"], entries["gap"] = float(primal), float(gap) * factor
            entries["primal_error"] = float(primal) * 1e-12
            largest = max(largest, float(gap / primal) if primal else 0.0)
    if largest > frames.header[1]["tol"]:
        frames.header[1]["tol"] = largest * float(rng.choice([1.0, 1 + 1e-9, 1.1, 0.999]))
    return f"as it is, times {factor}"
