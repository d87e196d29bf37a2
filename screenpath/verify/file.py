"""The certificate file: what a run claims, in a form that needs no program but a few lines to read.

``certificate.bin`` begins with ``MAGIC`` and holds frames: one byte that says what it is, the length of its content
(8 bytes, little-endian), the CRC-32 of kind and content (4 bytes) and the content, compressed by zlib: one line of JSON
and then the bytes of the arrays that its entry ``arrays`` lists as ``[name, type, size]``. The page
``examples/guide/certificate.md`` defines what the frames of each model hold.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import struct
import zlib
from pathlib import Path

import numpy as np

from screenpath.errors import DataError

NAME, CERTIFIED = "certificate.bin", "certified"
PARAMETERS = ("C", "alpha", "beta", "lambda")
MAGIC = b"screenpath certificate 1\n"
HEADER, STEP, END = b"H", b"S", b"E"  # the problem, first; a step each; last, how many steps there are
NEXT = b"N"  # claims of the step before, by the pair of the step that follows
FOLDS, FOLD = "folds.bin", b"F"  # of the folds of a cross-validation; what a fold has of its own, before its steps
LEAVE = b"L"  # of a leave-one-out: what is different without a row
# What unpacking and using a part whose entries are missing, of the wrong kind or too large may raise.
UNFIT = (
    zlib.error, ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError,
    MemoryError,
)  # fmt: skip
LOW, HIGH, BETWEEN = 0, 1, 2
NOTHING, OWN, BEFORE, AFTER = 0, 1, 2, 3
TYPES = {"f8": "<f8", "u1": "|u1", "i8": "<i8"}
NUMBER = 8  # bytes of a number in an array's file
TEXT = 1 << 26  # bytes of the largest line of JSON that is unfolded
UNTOLD = 8 << 30  # bytes of memory where the system (Windows) does not tell
EACH = 64  # bytes that the arrays of a part have at most for each sample and feature, of each class
OWN_FILE = "name a run folder, or what screenpath loo RUN wrote with `certificate=FILE`"
LEVERS = 4  # times as many has a part of folds.bin: up to ten levers, of all samples if these are few


def frame(kind: bytes, fields: dict, arrays: dict) -> bytes:
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    listed = [[name, array.dtype.str[1:], array.size] for name, array in arrays.items()]
    text = json.dumps({**fields, "arrays": listed}) + "\n"
    content = zlib.compress(text.encode() + b"".join(array.tobytes() for array in arrays.values()), 1)
    return kind + struct.pack("<QI", len(content), zlib.crc32(kind + content)) + content


class Hashed:
    """Bytes and SHA-256 of what was read of a file, as run.json has them: what is hashed is what was used."""

    def __init__(self):
        self._size, self._digest = 0, hashlib.sha256()

    def add(self, data: bytes) -> bytes:
        """Take the next bytes of the file, and return them."""
        self._size += len(data)
        self._digest.update(data)
        return data

    @property
    def entry(self) -> dict:
        return {"bytes": self._size, "sha256": self._digest.hexdigest()}


def frames(path, hashed: Hashed | None = None, times: int = 1):
    """Yield kind, fields and arrays of every frame of a file; ``hashed`` takes all that is read.

    A part has up to ``times`` the bytes that one of ``certificate.bin`` has at most.
    """
    hashed = hashed or Hashed()
    try:
        with open(path, "rb") as file:
            if hashed.add(file.read(len(MAGIC))) != MAGIC:
                why = "it does not begin as one of format 1"
                raise damaged(path, why) if of_run(path) else DataError(f"{path} is no certificate: {why}", OWN_FILE)
            left, most = memory(), 0
            while head := hashed.add(file.read(13)):
                if len(head) < 13:
                    raise damaged(path, "it is cut short")
                size, crc = struct.unpack("<QI", head[1:])
                rest = os.fstat(file.fileno()).st_size - file.tell()
                content = hashed.add(file.read(size)) if size <= rest else b""
                if len(content) < size or zlib.crc32(head[:1] + content) != crc:
                    raise damaged(path, "a part of it is cut short or has changed")
                fields, arrays = _content(path, content, None if head[:1] == HEADER else most, left)
                if head[:1] == HEADER:
                    most = times * largest(fields)
                left -= sum(array.nbytes for array in arrays.values())
                yield head[:1], fields, arrays
    except FileNotFoundError:
        if Path(f"{path}.partial").exists():
            raise DataError(f"{path} is not finished", "continue the run with `resume`") from None
        without = "one-vs-rest, given kernels, and folds with a kernel or of pairs, have none"
        hint = f"{_command(Path(path).parent)}, with `certificate`; merging needs it of all parts; {without}"
        raise DataError(f"{path}: no such file", hint) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}", "check that it may be read") from None


def _command(folder: Path) -> str:
    """Return the command that computes a run again, as far as its folder tells the model."""
    try:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        model, cv = str(record["model"]), "cv " if "folds" in record["options"] else ""
    except (OSError, ValueError, KeyError, TypeError):
        return "compute it"
    return f"compute it with screenpath {cv}{model}"


def memory() -> int:
    """Return the size of the machine's memory: what cannot be held is not unfolded."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else UNTOLD


def numbers_of(content: bytes, name: str, dimensions: int = 1) -> np.ndarray:
    """Return the numbers of an array's file as ``numpy.save`` writes it."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"{name} is not of the format that runs write")
    shape, order, dtype = np.lib.format.read_array_header_1_0(stream)
    if len(shape) != dimensions or order or dtype.kind not in "if" or dtype.itemsize > NUMBER:
        raise ValueError(f"{name} is not {'a vector' if dimensions == 1 else 'a matrix'} of numbers")
    return np.frombuffer(content, dtype, offset=stream.tell()).reshape(shape)


def largest(fields: dict) -> int:
    """Return the bytes that the arrays of a part have at most, as the problem says; one of ``UNFIT`` if it does not."""
    n, d, tol = fields["data"]["n_samples"], fields["data"]["n_features"], fields["tol"]
    if type(n) is not int or type(d) is not int or n < 1 or d < 0:
        raise ValueError("numbers of samples and features that no data has")
    if not (type(tol) is float and 0.0 < tol < math.inf):
        raise ValueError("a tolerance that is none")
    return EACH * (n + d + 2) * max(len((fields["labels"] or {}).get("classes", ())), 1)


def _content(path, content: bytes, most: int | None, left: int) -> tuple[dict, dict]:
    """Return fields and arrays of a part; no more is unfolded than these have, ``most`` or ``left`` bytes.

    Without ``most`` the part is the problem's, which says it.
    """
    try:
        stream = zlib.decompressobj()
        text, newline, data = stream.decompress(content, TEXT).partition(b"\n")
        if not newline:
            raise ValueError(f"its first line does not end within {TEXT:,} bytes")
        fields, arrays, start = json.loads(text), {}, 0
        listed = [(name, np.dtype(TYPES[kind]), size) for name, kind, size in fields.pop("arrays")]
        if any(type(n) is not str or n in fields or type(size) is not int or size < 0 for n, _, size in listed):
            raise ValueError("an array has a name or a size that none has")
        if len({name for name, _, _ in listed}) < len(listed):
            raise ValueError("two arrays have one name")
        total = sum(size * dtype.itemsize for _, dtype, size in listed)
        if total > min(largest(fields) if most is None else most, left):
            raise ValueError(f"arrays of {total:,} bytes: more than the problem has, or than this machine can hold")
        if len(data) <= total:
            data += stream.decompress(stream.unconsumed_tail, total - len(data) + 1)
        if len(data) != total or not stream.eof or stream.unused_data:
            raise ValueError("more or fewer bytes than its arrays have")
        for name, dtype, size in listed:
            arrays[name] = np.frombuffer(data, dtype, size, start)
            start += arrays[name].nbytes
    except UNFIT as error:
        raise damaged(path, f"a part of it makes no sense ({error})") from None
    return fields, arrays


def of_run(path) -> bool:
    """Tell a run folder, or its certificate, from a file of its own, as of a leave-one-out."""
    return Path(path).name in (NAME, FOLDS) or Path(path).is_dir()


def damaged(path, why: str) -> DataError:
    again = "compute the path again with `certificate` and `force`"
    alone = "write it again: screenpath loo RUN, with `certificate=FILE` and `force`"
    return DataError(f"{path} is damaged: {why}", again if of_run(path) else alone)


def read_certificate(path) -> tuple[dict, list]:
    """Return fields and arrays of the problem, and of every step, claims by the step after it joined to its own."""
    header, several = read_pairs(path)
    if len(several) > 1:
        raise DataError(f"{path} is that of pairs of labels", "fit one label against the others: `positive=LABEL`")
    return header, several[0]


def read_pairs(path, hashed: Hashed | None = None) -> tuple[dict, list[list]]:
    """Return the problem, and the steps of each pair of labels, as :func:`read_certificate`; of other models once."""
    header: dict = {}
    several: dict[int, list[dict]] = {}
    end, count = None, 1
    for number, (kind, fields, arrays) in enumerate(frames(path, hashed)):
        content = {**fields, **arrays}
        pair = fields.get("pair", 0) if kind in (STEP, NEXT) else 0
        if type(pair) is not int or not 0 <= pair < count:
            raise damaged(path, "it has steps of a pair of labels that there is not")
        steps = several.setdefault(pair, [])
        if (kind == HEADER) != (number == 0) or end is not None:
            raise damaged(path, "its parts are not in order")
        if kind == HEADER:
            header = content
            if fields.get("one_vs_one"):
                classes = (fields["labels"] or {}).get("classes")
                if not isinstance(classes, list) or len(classes) < 3:
                    raise damaged(path, "it has no labels to pair")
                count = len(classes) * (len(classes) - 1) // 2
        elif kind == STEP and fields.get("step") == len(steps):
            steps.append(content | {"after": None})
        elif kind == NEXT and steps[1:] and fields.get("step") == len(steps) - 2 and steps[-2]["after"] is None:
            steps[-2]["after"] = content.get("claims")
        elif kind == END and [len(one) for one in several.values()] == [fields.get("steps")] * len(several):
            end = content
        else:
            raise damaged(path, "its parts are not in order")
    if end is None:
        raise DataError(f"{path} is not finished", "continue the run with `resume`; or the file was cut short")
    if len(several) < count:
        raise damaged(path, "it lacks pairs of its labels")
    return header, [several[pair] for pair in range(count)]


def pack(codes: np.ndarray) -> np.ndarray:
    """Return codes of 2 bits as bytes."""
    four = np.zeros(-(-codes.size // 4) * 4, dtype=np.uint8)
    four[: codes.size] = codes
    return four[0::4] | four[1::4] << 2 | four[2::4] << 4 | four[3::4] << 6


def unpack(packed: np.ndarray, start: int, stop: int) -> np.ndarray:
    some = packed[start // 4 : -(-stop // 4)]
    return np.stack([some >> shift & 3 for shift in (0, 2, 4, 6)], axis=1).ravel()[start % 4 :][: stop - start]
