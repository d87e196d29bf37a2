"""What is said to people: one place where text of theirs (names of files, tokens) is made harmless for a terminal."""

from __future__ import annotations

import sys


def shown(text: str) -> str:
    """Return text on one line with everything that does not print shown as an escape: a name may hold commands.

    A terminal obeys control characters, and characters without a glyph can reverse or hide what stands around them.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shown_lines(text: str) -> str:
    """Return :func:`shown` of each line of a text that has several by itself."""
    return "\n".join(shown(line.replace("\t", "  ")) for line in text.split("\n"))


def tell(text: str) -> None:
    """Print one line of text to stderr."""
    print(shown(text), file=sys.stderr, flush=True)
