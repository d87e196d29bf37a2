"""Screening rules, and the parsing of what a user asks for (``dvi``, ``it+gap``, ...)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from screenpath.errors import UsageError
from screenpath.rules.box import BT2, DVI, ESSNSV, IT, SSNSV, pair_ball

STATIC = {"dvi": DVI, "bt1": DVI, "bt2": BT2, "it": IT, "ssnsv": SSNSV, "essnsv": ESSNSV}


@dataclass(frozen=True, slots=True)
class Screening:
    """What is screened when.

    Parameters
    ----------
    static : rule or None
        Applied once before each solve, from the previous grid point.
    dynamic : bool
        Apply the gap ball of the current iterate while solving.
    name : str
        As the user wrote it.
    """

    static: object | None
    dynamic: bool
    name: str

    @property
    def needs_far_end(self) -> bool:
        """Tell whether the static rule needs the solution at the largest C first (the papers' "Init.")."""
        return self.static is not None and self.static.needs_far_end

    def with_far_end(self, far):
        """Return the same screening, its rule bound to the certificate of the far end."""
        return replace(self, static=self.static.bound_to(far))

    def before(self, model, reference, parameter):
        """Screen from the previous grid point, before the solve."""
        if self.static is None:
            return model.nothing_screened()
        return model.screen(self.static.region(model, reference, parameter))

    def again(self, model, certificate, parameter):
        """Screen with the ball of a certified pair at the same parameter (dynamic rule, all rows)."""
        return model.screen(pair_ball(certificate, parameter))


def parse_rule(text: str) -> Screening:
    """Turn ``none``, ``gap``, ``RULE`` or ``RULE+gap`` into a :class:`Screening`.

    Raises
    ------
    UsageError
        For an unknown rule, naming the ones that exist.
    """
    parts = [part.strip().lower() for part in text.split("+")]
    known = sorted(STATIC)
    static, dynamic = None, False
    for part in parts:
        if part == "gap":
            dynamic = True
        elif part in STATIC and static is None:
            static = STATIC[part]()
        elif part != "none" or len(parts) > 1:
            raise UsageError(
                f"unknown rule '{text}'",
                f"use none, gap, one of {', '.join(known)}, or one of them with +gap (for example dvi+gap)",
            )
    return Screening(static, dynamic, text)
