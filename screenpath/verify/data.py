"""The data of a certificate: the checker's own reader of LIBSVM text, fingerprint, labels and scaling."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from screenpath.errors import DataError
from screenpath.verify.exact import UNIT, divided, fsum, two_product, two_sum
from screenpath.verify.file import memory

OTHER = "name the LIBSVM text that the run was computed on: its certificate counts features as that file does"
ENTRIES = 1 << 18  # values of one block, or some more
DENSE = 1 << 22  # values of one block of rows that scaling makes dense
ROUNDINGS = 3  # of the weight of a sample times that of its class, where that is n / (classes x samples of the class)
BUFFER = 1 << 16  # bytes read at once of xz
LINE, CELL = 1 << 22, 128  # bytes of a line beyond what its features take, and of each of these: more is no data


@dataclass
class Block:
    """Rows of the data, scaled: ``values + tails`` are the entries, row by row, of the columns ``columns``."""

    first: int  # number of the first row, from 0
    labels: np.ndarray  # shape (rows,)
    indptr: np.ndarray  # int64 of shape (rows + 1,)
    columns: np.ndarray  # columns, values: shape (entries,)
    values: np.ndarray
    # shape (entries,): None where the values are exact; else entries to ``16 UNIT^2`` of them
    tails: np.ndarray | None = None
    bias: int = -1  # the column of the bias, which is exact; -1 where there is none
    unknown: np.ndarray | None = None  # of each column: what an entry is off by in addition to what its tail is

    def __post_init__(self):
        self.rows = np.repeat(np.arange(self.labels.size), np.diff(self.indptr))  # of each entry, from 0


class Source:
    """Rows of a LIBSVM text file, plain or compressed, block by block; the file is read again for every pass.

    ``header``, of the certificate, has the shape and the SHA-256 that the data must have, and what is made of it;
    ``rows`` is the most that a block has.
    """

    wrong, other = "this is not LIBSVM text", OTHER
    converted = False  # whether columns were chosen before, and cells read, by ``screenpath convert``

    def __init__(self, path, header: dict, rows: int):
        self.path, self.header = Path(path), header
        self.base = 0 if header["data"]["zero_based"] else 1  # of the numbers of columns in the file
        self.n, self.width = header["data"]["n_samples"], header["data"]["n_features"]
        self.longest = min(LINE + CELL * self.width, memory() // 16)  # of a text; numbers take more
        self.columns = header.get("columns")
        self.d = self.width if self.columns is None else self.columns.size
        self.rows = min(rows, DENSE // max(self.d, 1) + 1) if header["scaling"] == "standard" else rows
        names = header["data"].get("label_names")
        self.places = {name: float(k) for k, name in enumerate(names or ())}  # of labels that are texts
        if len(self.places) < len(names or ()):
            raise ValueError("two labels have one name")
        self.texts: dict[float, str] = {}  # of labels that are numbers: the one that stands in the file first
        self.spells = names is None and header["labels"] is not None
        self.content: bytes | None = None  # SHA-256 of all blocks of the first pass

    def passed(self, indices: bool):
        """Yield all blocks, and make sure at the end that these are the data of the certificate.

        The fingerprint is that of indices, row pointers, values and labels one after the other, so that one pass takes
        the first half of it (``indices``) and the next one the second half; both may be asked for again. The file may
        change between the passes: each also hashes all that it reads, block by block, and the two have to agree.
        """
        n, labels, content = 0, [], hashlib.sha256()
        if indices:
            self.indptr = [np.zeros(1, dtype=np.int64)]
            self.digest = hashlib.sha256(repr((self.n, self.width)).encode())
        for block in self._blocks():
            for part in (block.indptr, block.columns, block.values, block.labels):
                content.update(part.data)
            if indices:
                self.digest.update(block.columns.astype(np.int64).data)
                self.indptr.append(block.indptr[1:] + self.indptr[-1][-1])
            else:
                self.digest.update(block.values.data)
            labels.append(block.labels)
            n += block.labels.size
            if n > self.n or block.columns.size and not 0 <= block.columns.min() <= block.columns.max() < self.width:
                raise self._other()
            if self.columns is not None and block.columns.size:
                places = np.searchsorted(self.columns[:-1], block.columns)
                if np.any(self.columns[places] != block.columns):
                    raise self._other()
                block.columns = places
            yield scaled(block, self.header, self.d)
        for part in self.indptr if indices else labels:
            self.digest.update(np.ascontiguousarray(part).data)
        if indices:
            self.content = content.digest()
        elif content.digest() != self.content:
            what = f"{self.path} has changed while it was read: the second pass met other data than the first"
            raise DataError(what, "check again when nothing writes to the file")
        if n != self.n or not indices and not self.same():
            raise self._other()

    def same(self) -> bool:
        """Tell whether both passes have read the data of the certificate."""
        return self.digest.hexdigest() == self.header["data"]["sha256"]

    def label(self, text: str) -> float:
        """Return the number of a label that is a text."""
        if text not in self.places:
            raise self._other()
        return self.places[text]

    def mapping(self) -> dict | None:
        """Return the certificate's map of labels, those that are texts as their numbers."""
        labels, number = self.header["labels"], self.places.__getitem__ if self.places else float
        if labels is None:
            return labels
        if "classes" in labels:
            return {"classes": [number(text) for text in labels["classes"]]}
        return {sign: text if (sign, text) == ("-1", "rest") else number(text) for sign, text in labels.items()}

    def _other(self) -> DataError:
        return DataError(f"{self.path} is not the data of the certificate: its content differs", "name the same data")

    def _blocks(self):
        """Gather rows into blocks."""
        first, labels, counts = 0, [], [0]
        columns: list[float] = []
        values: list[float] = []
        for label, places, numbers in self._entries():
            labels.append(label)
            columns.extend(places)
            values.extend(numbers)
            counts.append(len(values))
            if len(labels) >= self.rows or len(values) > ENTRIES:
                yield self._block(first, labels, counts, columns, values)
                first, labels, counts, columns, values = first + len(labels), [], [0], [], []
        if labels:
            yield self._block(first, labels, counts, columns, values)

    def _block(self, first, labels, counts, columns, values) -> Block:
        y, places, numbers = np.array(labels), np.array(columns, dtype=np.float64), np.array(values, dtype=np.float64)
        known = numbers if "fill" not in self.header else numbers[~np.isnan(numbers)]
        if not all(np.all(np.isfinite(part)) for part in (y, places, known)):
            raise DataError(f"{self.path}, rows {first + 1} to {first + y.size}: {self.wrong}", self.other)
        falls = np.flatnonzero(np.diff(places) <= 0.0) + 1  # from one row to the next one only
        if np.any(places % 1.0) or not np.all(np.isin(falls, counts)):
            raise DataError(f"{self.path}: indices of rows {first + 1} to {first + y.size} do not rise", self.other)
        return Block(first, y, np.array(counts), places.astype(np.int64) - self.base, numbers)

    def _entries(self):
        """Yield each row: its label, the columns of its values as the file counts them, and the values."""
        for number, line in enumerate(self._lines(), start=1):
            line = line.partition(b"#")[0]
            if b"qid:" in line:
                line = b" ".join(token for token in line.split() if not token.startswith(b"qid:"))
            tokens = line.replace(b":", b" ").split()
            if not tokens:
                continue
            try:
                if self.places:
                    tokens[0] = self.label(tokens[0].decode("utf-8", "replace"))
                elif self.spells:
                    self.texts.setdefault(float(tokens[0]), tokens[0].decode("utf-8", "replace"))
                numbers = [*map(float, tokens)]
            except ValueError:
                raise DataError(f"{self.path}, line {number}: {self.wrong}", OTHER) from None
            if not len(numbers) % 2:
                raise DataError(f"{self.path}, line {number}: {self.wrong}", OTHER)
            yield numbers[0], numbers[1::2], numbers[2::2]

    def _lines(self):
        try:
            with open(self.path, "rb") as raw:
                head = raw.peek(6)
                opener = next((opener for magic, opener in OPENERS if head.startswith(magic)), None)
                file = raw if opener is None else opener(raw)
                first = True
                while line := file.readline(self.longest):
                    if len(line) == self.longest:
                        raise DataError(f"{self.path} has a line of {len(line):,} bytes or more", OTHER)
                    yield line.removeprefix(b"\xef\xbb\xbf") if first else line
                    first = False
        except FileNotFoundError:
            raise DataError(f"{self.path}: no such file", "name the data file behind the run folder") from None
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise DataError(f"{self.path} cannot be read: {error}", "check the file, or name another copy") from None


class Unpacked(io.RawIOBase):
    """The content of a file of xz, whose header may ask for any memory: no more than the machine has."""

    def __init__(self, raw):
        self.raw, self.decoder, self.held = raw, self._decoder(), b""

    def _decoder(self):
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memory())

    def readable(self) -> bool:
        return True

    def readinto(self, target) -> int:
        while True:
            if self.decoder.eof:  # one stream after another, zeros between them
                self.held = self.decoder.unused_data.lstrip(b"\0")
                while not self.held and (data := self.raw.read(BUFFER)):
                    self.held = data.lstrip(b"\0")
                if not self.held:
                    return 0
                self.decoder = self._decoder()
            if self.decoder.needs_input and not self.held:
                self.held = self.raw.read(BUFFER)
                if not self.held:
                    raise EOFError("it is cut short")
            data, self.held = self.decoder.decompress(self.held, len(target)), b""
            if data:
                target[: len(data)] = data
                return len(data)


def _xz(raw):
    return io.BufferedReader(Unpacked(raw), BUFFER)


OPENERS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\x00", _xz))


def usual(value: float) -> str:
    """Return the text of a number where the file has no other one: ``3`` rather than ``3.0``."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 2.0**53 else repr(value)


def need_file(path: Path) -> None:
    """Refuse what cannot be read twice: a pipe, a device."""
    if path.exists() and not path.is_file():
        what = f"{path} is a pipe or a device, and the checker reads the data twice"
        raise DataError(what, "write the data to a file, and name that")


def signs_of(labels: np.ndarray, mapping: dict) -> np.ndarray:
    """Return +1 and -1 for the labels of the file, as the certificate's map says."""
    plus = labels == float(mapping["+1"])
    if mapping["-1"] != "rest" and not np.all(plus | (labels == float(mapping["-1"]))):
        raise DataError("the data have a label that the certificate lacks", "name the data of the run")
    return np.where(plus, 1.0, -1.0)


def weights_of(header: dict, block: Block) -> np.ndarray:
    """Return the weights of the samples of a block, 1 where there are none."""
    if "weights" not in header:
        return np.ones(block.labels.size)
    weights = header["weights"][block.first : block.first + block.labels.size]
    if weights.size != block.labels.size or not np.all((weights >= 0.0) & (weights < np.inf)):
        raise DataError("the certificate's weights are not those of the data's samples")
    return weights


def weights_error(header: dict) -> float:
    """Return the largest relative error of a weight: a sample's times that of its class, itself rounded or not."""
    return header.get("roundings", ROUNDINGS) * UNIT * ("weights" in header)


def scaled(block: Block, header: dict, d: int) -> Block:
    """Return the rows ``[(x - shift) / scale, bias]``, or ``[x / ||x||, bias]`` for the scaling ``l2``."""
    kind, bias, rows = header["scaling"], header["bias"], block.labels.size
    block = replace(block, values=filled(block.values, header, block.columns))
    indptr, columns, values, tails = block.indptr, block.columns, block.values, None
    if kind == "standard":
        X = np.zeros((rows, d))
        X[block.rows, columns] = values
        above, below = two_sum(X, -header["shift"])
        parts = divided(above, below, header["scale"], 0.0)
        values, tails = (part.ravel() for part in parts)
        indptr, columns = np.arange(rows + 1) * d, np.tile(np.arange(d), rows)
    elif kind in ("none", "maxabs"):  # without a scaling, a scale is that of the penalty
        if "shift" in header:
            if not (header.get("intercept") == "free" or header["model"] == "l1svm") or "kernel" in header:
                raise DataError("the certificate centres the columns of a problem that this changes")
            block = with_zeros(block, np.flatnonzero(header["shift"]))
            indptr, columns = block.indptr, block.columns
            values, tails = two_sum(block.values, -header["shift"][columns])
        if "scale" in header:
            values, tails = divided(values, 0.0 if tails is None else tails, header["scale"][columns], 0.0)
    elif kind == "l2":
        if "scale" in header or "shift" in header:
            raise DataError("the certificate has a scale or a shift beside the scaling 'l2', which has none")
        values, tails = divided(values, 0.0, *(part[block.rows] for part in row_norms(block)))
    elif kind != "none":
        raise DataError(f"the certificate names the scaling '{kind}', which the checker does not know")
    if bias:
        ends = indptr[1:]
        columns, values = np.insert(columns, ends, d), np.insert(values, ends, bias)
        tails = None if tails is None else np.insert(tails, ends, 0.0)
        indptr = indptr + np.arange(rows + 1)
    return Block(block.first, block.labels, indptr, columns, values, tails, d if bias else -1)


def filled(values: np.ndarray, header: dict, columns: np.ndarray) -> np.ndarray:
    """Return values with those of the certificate in the place of missing ones (nan)."""
    return np.where(np.isnan(values), header["fill"][columns], values) if "fill" in header else values


def with_zeros(block: Block, some: np.ndarray) -> Block:
    """Return a block that has an entry for each row in some columns, 0 where the file has none."""
    places = np.searchsorted(some, block.columns)
    hit = places < some.size
    hit[hit] = some[places[hit]] == block.columns[hit]
    lacking = np.ones((block.labels.size, some.size), dtype=bool)
    lacking[block.rows[hit], places[hit]] = False
    rows, which = np.nonzero(lacking)
    ends = block.indptr[rows + 1]
    columns, values = np.insert(block.columns, ends, some[which]), np.insert(block.values, ends, 0.0)
    more = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=block.labels.size))])
    return Block(block.first, block.labels, block.indptr + more, columns, values)


def taken(block: Block, rows: np.ndarray, first: int = 0) -> Block:
    """Return some rows of a block, in the order given; ``first`` is the number of the first of them there."""
    lengths = np.diff(block.indptr)[rows]
    ends = np.append(0, np.cumsum(lengths))
    entries = np.arange(ends[-1]) + np.repeat(block.indptr[rows] - ends[:-1], lengths)
    tails = None if block.tails is None else block.tails[entries]
    return Block(first, block.labels[rows], ends, block.columns[entries], block.values[entries], tails, block.bias)


def row_norms(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Return the norms of the rows in two parts, good to ``4 UNIT^2``; 1 for a row of zeros."""
    norms, tails = np.ones(block.labels.size), np.zeros(block.labels.size)
    for i in range(norms.size):
        values = block.values[block.indptr[i] : block.indptr[i + 1]]
        _, exponent = np.frexp(np.max(np.abs(values), initial=0.0))
        parts = np.concatenate(two_product(*(2 * [np.ldexp(values, -exponent)]))).tolist()
        square = fsum(parts)
        if square > 0.0:
            root = square**0.5
            p, e = two_product(root, root)
            norms[i] = np.ldexp(root, exponent)
            tails[i] = np.ldexp((((square - p) - e) + fsum([*parts, -square])) / (2.0 * root), exponent)
    return norms, tails
