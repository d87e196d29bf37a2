"""LIBSVM text to blocks of whole lines for shards; and standard input to something that can be read twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from screenpath.data.files.csv_file import HEADER, header_of
from screenpath.data.files.libsvm import BLOCK, Parser, last_line_end
from screenpath.data.files.source import BUFFER, Begun, Kept, open_source
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.words.words import first_is_word, words_of

NEWLINE = 10
MEMORY_FACTOR = 8  # bytes that a job needs for each byte of its block: text, parsed entries, binary parts


@contextmanager
def rereadable(sources: Sequence, folder):
    """Yield sources of which tables, and text with words for labels, can be read more than once.

    Sources are paths, also of pipes, ``-`` for standard input, or binary file objects. Text in a stream whose labels
    are numbers is read as it comes; what is to be read twice is kept in ``folder`` meanwhile.
    """
    with ExitStack() as stack:
        found = []
        for source in sources:
            if not _is_stream(source):
                found.append(source)
                continue
            stream, name = stack.enter_context(open_source(source))
            head = _head(stream)
            begun = Begun(head, stream, name)
            twice = header_of(head.lstrip(b"\xef\xbb\xbf\r\n")) is not None or first_is_word(head.splitlines())
            found.append(stack.enter_context(Kept(begun, name, folder)) if twice else begun)
        yield found


def _is_stream(source) -> bool:
    """Tell whether a source gives its bytes once: a stream, or what has a name but is no file (a pipe)."""
    if hasattr(source, "read") or str(source) == "-":
        return True
    path = Path(source)
    return path.exists() and not path.is_file() and not path.is_dir()


def _head(stream) -> bytes:
    """Return the beginning of a stream: its lines up to the first that has a label."""
    head = b""
    while len(head) < HEADER:
        more = stream.read1(BUFFER)
        if not more:
            break
        head += more
        whole = head[: head.rfind(b"\n") + 1].lstrip(b"\xef\xbb\xbf\r\n")
        if whole and first_is_word(whole.splitlines()) is not None:
            break
    return head


def label_words(sources: Sequence, limit: MemoryLimit) -> tuple[str, ...]:
    """Return the labels of LIBSVM text where they are words, sorted; none where they are numbers.

    The first label tells. What can be read only once has numbers.
    """
    found: set[str] = set()
    for source in sources:
        if isinstance(source, Begun):
            continue
        with open_source(source) as (stream, name):
            if not found and not first_is_word(stream):
                return ()
        for block in text_blocks([source], BLOCK, limit):
            found |= words_of(block.text.tobytes())
    return tuple(sorted(found))


@dataclass(frozen=True)
class TextBlock:
    """Whole lines that make a shard."""

    name: str
    line: int  # lines of the file before the block
    text: np.ndarray  # uint8: ends in a newline

    @property
    def nbytes(self) -> int:
        """Return the bytes of the text."""
        return self.text.size


def text_blocks(sources, size: int, limit: MemoryLimit) -> Iterator[TextBlock]:
    """Cut text into blocks of whole lines, at least one line and about ``size`` bytes each."""
    for source in sources:
        with open_source(source) as (stream, name):
            lines, held = 0, np.empty(0, dtype=np.uint8)
            while True:
                text, held = _next_block(stream, held, size, limit, name)
                if not text.size:
                    break
                yield TextBlock(name, lines, text)
                lines += int(np.count_nonzero(text == NEWLINE))


def _next_block(stream, held: np.ndarray, size: int, limit: MemoryLimit, name: str):
    """Return whole lines and the beginning of the line behind them."""
    text = np.empty(max(size, held.size), dtype=np.uint8)
    text[: held.size] = held
    filled = held.size
    while True:
        while filled < text.size:
            got = stream.readinto(text.data[filled:])
            if not got:
                whole = text[:filled]
                if filled and whole[-1] != NEWLINE:
                    whole = np.append(whole, np.uint8(NEWLINE))  # the last line had no newline
                return whole, np.empty(0, dtype=np.uint8)
            filled += got
        stop = last_line_end(text, 0, filled)
        if stop:
            return text[:stop], text[stop:filled].copy()
        limit.check_line(
            MEMORY_FACTOR * 2 * text.size, f"{name}: a line of more than {text.size >> 20} MB",
            "raise `max_memory` if this is a data file",
        )  # fmt: skip
        text = np.concatenate([text, np.empty(text.size, dtype=np.uint8)])


def parse_block(block: TextBlock, zero_based: bool, dtype, names: Sequence[str]) -> Parser:
    """Parse a block, a piece at a time: a parser's scratch space is many times the text it is fed at once."""
    parser = Parser(block.name, zero_based, dtype, line=block.line, names=names)
    start, text = 0, block.text
    while start < text.size:
        stop = last_line_end(text, start, min(start + BLOCK, text.size))
        if not stop:  # a line longer than a piece
            stop = start + int(np.argmax(text[start:] == NEWLINE)) + 1
        parser.feed(text[start:stop], stop - start)
        if parser.faults:
            raise parser.faults[0].error()
        start = stop
    return parser
