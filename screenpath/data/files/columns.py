"""Which columns of a table are features: selectors of names, ranges and patterns."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import TypeAlias

from screenpath.errors import UsageError

Names: TypeAlias = str | Sequence[str]
SHOWN = 20  # columns that a message lists
PIECE = re.compile(r"\s*(!?/(?:[^/\\]|\\.)*/|[^,]*?)\s*(?:,|$)")  # a pattern may contain commas


def listed(names: Sequence[str]) -> str:
    some = ", ".join(name or "''" for name in names[:SHOWN])
    return some + (f", ... ({len(names)} in all)" if len(names) > SHOWN else "")


def as_texts(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return one or several texts as a tuple: the letters of a single one are no columns."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def features(
    names: Sequence[str], target: str | None, columns: Names | None = (), drop: Names | None = (),
    source: str = "the table",
) -> tuple[str, ...]:  # fmt: skip
    """Return the columns that are features, in the order of the table: those that ``columns`` selects (by default all)
    without those that ``drop`` selects, and without the target. UsageError: unknown columns, or ``drop`` of the target.
    """
    kept = selected(names, as_texts(columns), "columns", source) if columns else set(names)
    dropped = selected(names, as_texts(drop), "drop", source)
    if target in [piece for text in as_texts(drop) for piece in _pieces(text, names)]:
        raise UsageError(f"`drop={target}` names the target", "leave it out of `drop`, or name another `target=COLUMN`")
    return tuple(name for name in names if name in kept and name not in dropped and name != target)


def selected(names: Sequence[str], selectors: Sequence[str], option: str, source: str) -> set[str]:
    """Return the columns that selectors name: ``a,b``, ``a:c`` by position, ``/regex/``, and ``!`` before what to take
    out again. If the first one takes out, it does so from all columns.
    """
    found: set[str] = set()
    pieces = [piece for text in selectors for piece in _pieces(text, names)]
    if pieces and pieces[0].startswith("!") and pieces[0] not in names:
        found = set(names)
    for piece in pieces:
        out = piece.startswith("!") and piece not in names
        some = _matching(names, piece[out:].strip(), option, source)
        found = found - some if out else found | some
    return found


def _pieces(text: str, names: Sequence[str]) -> list[str]:
    return [text] if text in names else [piece for piece in PIECE.findall(text) if piece]


def _matching(names: Sequence[str], piece: str, option: str, source: str) -> set[str]:
    """Return the columns of one name, range or pattern."""
    if piece in names:
        return {piece}
    if len(piece) > 1 and piece[0] == piece[-1] == "/":
        try:
            some = {name for name in names if re.search(piece[1:-1], name)}
        except re.error as error:
            raise UsageError(f"`{option}={piece}` is not a regular expression: {error}", "see Python's re") from None
        if some:
            return some
        raise UsageError(f"{source}: no column matches `{option}={piece}`", f"there are {listed(names)}")
    for colon in (k for k, letter in enumerate(piece) if letter == ":"):  # names may contain colons too
        first, last = piece[:colon].strip(), piece[colon + 1 :].strip()
        if first in names and last in names:
            start, end = names.index(first), names.index(last)
            if start > end:
                raise UsageError(f"`{option}={piece}`: '{first}' stands after '{last}'", f"write {last}:{first}")
            return set(names[start : end + 1])
    wrong = next((end.strip() for end in piece.split(":") if end.strip() not in names), piece)
    raise no_column(source, wrong, names, f"`{option}={piece}`")


def no_column(source: str, wrong: str, names: Sequence[str], given: str) -> UsageError:
    """Return the error about a column that a table does not have, with those of nearly this name, or all."""
    near = difflib.get_close_matches(wrong, names, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {listed(names)}"
    return UsageError(f"{source} has no column '{wrong}' ({given})", hint)
