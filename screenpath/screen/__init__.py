"""Screening rules, and the parsing of what a user asks for (``dvi``, ``it+gap``, ...)."""

from __future__ import annotations

from screenpath.errors import UsageError
from screenpath.kernels.walk.compiled_types import NOTHING
from screenpath.screen.base import Composed, StaticRule
from screenpath.screen.box import BT2, DVI, ESSNSV, IT, SSNSV
from screenpath.screen.pathwise import GUESSED, BoxScreening, Pathwise
from screenpath.screen.plugins import plugged_rule

# The static rules of the box models. Their losses share one form, so each rule is valid for each of these models.
STATIC: dict[str, type[StaticRule]] = {"dvi": DVI, "bt1": DVI, "bt2": BT2, "it": IT, "ssnsv": SSNSV, "essnsv": ESSNSV}
AUTO, SAME = "auto", "dvi+gap"  # the default, and what it is wherever all rows are read


class Screening(Composed, BoxScreening):
    """What is screened when, of a box model."""

    @property
    def compiled(self) -> int:
        """Return which region a compiled walk builds before each solve, or that decisions are given."""
        return NOTHING if self.static is None else self.static.compiled

    @property
    def counts_all(self) -> bool:
        return self.name != AUTO

    def before(self, model, reference, parameter):
        if self.static is None:
            return model.nothing_screened()
        return model.screen(self.static.region(model, reference, parameter))


def takes_chunks(text: str) -> bool:
    """Tell whether the rule has a far end, so that one region can serve several steps."""
    parts = [part.strip().lower() for part in str(text).split("+")]
    return any(STATIC[part].needs_far_end for part in parts if part in STATIC)


def parse_rule(text: str, chunk: int | None = None, form: str = "C", guessed=tuple(GUESSED)):
    """Turn ``auto``, ``none``, ``gap``, ``heuristic``, ``sieve``, ``RULE``, ``RULE+gap`` or a plug-in
    (``data.safe.plugins``) into a screening; ``chunk`` and ``form`` are those of :class:`screen.pathwise.Pathwise`,
    ``guessed`` the guesses that the model has.

    An unknown rule, and a chunk with a rule that has no far end, is a UsageError that names those that work.
    """
    if (own := plugged_rule(text, Screening, Pathwise, chunk)) is not None:
        return own
    parts = [part.strip().lower() for part in (SAME if text == AUTO else text).split("+")]
    static, dynamic = None, False
    for part in parts:
        if part == "gap" and not dynamic:
            dynamic = True
        elif part in STATIC and static is None:
            static = STATIC[part]()
        elif part not in ("none", *guessed) or len(parts) > 1:
            raise UsageError(
                f"{'unknown rule' if guessed or part not in GUESSED else 'a kernel model has no rule'} '{text}'",
                f"use auto, none, gap, {', '.join((*guessed, *STATIC))}; the last {len(STATIC)} also with +gap: {SAME}",
            )
    if static is not None and static.needs_far_end:
        return Pathwise(static, dynamic, text, chunk, form)
    if chunk is not None:
        far = ", ".join(name for name, rule in STATIC.items() if rule.needs_far_end)
        raise UsageError(f"the rule '{text}' cannot serve several grid points at once", f"with a chunk use {far}")
    return GUESSED[parts[0]]() if parts[0] in GUESSED else Screening(static, dynamic, text)


def parse_kernel_rule(text: str):
    """Turn what :func:`parse_rule` does into a screening of a kernel model, which has no guesses.

    ``auto`` screens nothing: an active set finds by sorting what rules would prove at the cost of kernel rows.
    """
    if text == AUTO:
        return Screening(None, False, AUTO)
    return parse_rule(text, guessed=())
