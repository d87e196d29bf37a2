"""The box models as data: all there is to know about each loss (theory in :mod:`screenpath.problem.box`).

A loss is ``phi_i(t) = s_i max(lo t, hi t)`` of ``t_i = c_i - g_i.w``. An entry of ``LOSSES`` makes the command,
cross-validation, compare, predict and export; besides it a Python function in ``api.py`` names the loss, and the
independent checker (``verify/model.py``), which believes nobody.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from screenpath.catalogue.kernel_models import ABOUT, resolved
from screenpath.catalogue.option import Option, grouped, number
from screenpath.catalogue.options import C_GRID, CERTIFICATE, INTERCEPT, KERNEL, PENALTY, WEIGHTS, solving
from screenpath.catalogue.spec import Spec, c_grid, real_targets, sign_targets
from screenpath.data.safe.memory import BOX, MIRRORED
from screenpath.errors import UsageError
from screenpath.problem import LEVELS


@dataclass(frozen=True)
class Loss:
    """One loss with an L2 penalty."""

    name: str  # name, title, objective: see :class:`Spec`
    title: str
    objective: str
    # ``kinks(y, o)``: the kink of the loss, a number or one per row; of a mirrored loss three: for the rows, for
    # their mirror images, and an addend of both. ``o`` has the values of ``options`` as attributes
    kinks: Callable
    slopes: Callable  # ``slopes(o) -> (lo, hi)``: the bounds of a dual variable, for a sample of weight 1
    options: tuple = ()  # its own parameters
    signed: bool = False  # whether targets are -1 and +1 that multiply the rows: ``g_i = y_i x_i``, else ``g_i = x_i``
    mirrored: bool = False  # whether each row has two dual variables, the second with ``g = -x``
    score: str = "mae"  # score, chosen_by, liblinear: see :class:`Spec`
    chosen_by: str | None = None
    liblinear: str = "L2R_L1LOSS_SVR_DUAL"
    example: str = ""  # values of its level
    level: str = ""  # the one of ``options`` that a path may follow at one C; the option ``LEVEL_list`` has its values

    def model(self, rows, targets, weights=None, intercept=None, **values):
        """Return the model of some rows; ``targets``, shape (n,), are signs or real targets, and ``weights``, shape
        (n,), are ``s``: how often each row counts.

        With ``intercept="free"`` it has an unpenalised one; any other is a feature of the rows, or absent. ``values``
        are those of ``options``; an invalid one is a :class:`UsageError`.
        """
        import numpy as np

        from screenpath.numbers.accurate import two_sum
        from screenpath.problem.box import BoxModel

        o = SimpleNamespace(**{one.name: one.checked(values.get(one.name, one.default)) for one in self.options})
        s = np.ones(rows.n) if weights is None else np.array(weights, dtype=np.float64)
        kinks, (lo, hi) = self.kinks(None if self.signed else np.array(targets, dtype=np.float64), o), self.slopes(o)
        tail: Any = 0.0
        if self.mirrored:
            *sides, shift = kinks
            s, (kinks, tail) = np.concatenate([s, s]), two_sum(np.concatenate(sides), shift)
            tail = tail if tail.any() else 0.0
        elif np.ndim(kinks) == 0:  # one array for both: with many rows every vector is much memory
            kinks = s if weights is None and kinks == hi == 1.0 else np.full(rows.n, kinks)
        upper, rounding = s if hi == 1.0 else hi * s, {"tail": tail, "inexact": _inexact(lo, hi, weights)}
        if hasattr(rows, "blocks"):  # behind a kernel, and with their signs
            from screenpath.problem.free_kernel import FreeKernelModel  # here, as below: other paths start faster
            from screenpath.problem.kernel import KernelModel
            from screenpath.problem.smooth import bends

            behind, width = FreeKernelModel if intercept == "free" else KernelModel, values.get("smoothing")
            bend = None if width is None else bends(width, s)
            return behind(rows, kinks, lo * s, upper, self.name, bend=bend, **rounding)
        kind: type[BoxModel] = BoxModel
        if intercept == "free":
            from screenpath.problem.free import FreeModel

            kind = FreeModel
        signs = targets if self.signed else None
        more: dict = {"around": values["around"]} if "around" in values else {}  # known of another model of the rows
        return kind(rows, kinks, lo * s, upper, signs, self.mirrored, self.name, **rounding, **more)

    @property
    def listed(self) -> tuple[Option, ...]:
        """Return the option with the values of the level, if a path may follow one."""
        about = f"Follow {self.level} at one `c`: its values, for example {self.example}."
        return grouped("grid", Option(f"{self.level}_list", None, "numbers", about, changes=True)) if self.level else ()

    @functools.cache  # noqa: B019  # a loss lives as long as the process
    def spec(self) -> Spec:
        return Spec(
            name=self.name,
            title=self.title,
            objective=f"min {self.objective}",
            targets=sign_targets if self.signed else real_targets,
            build=partial(build, self.name),
            grid=c_grid,
            score=self.score,
            liblinear=self.liblinear,
            chosen_by=self.chosen_by,
            about=f"The labels of the file are real targets; they are not scaled.\n\n{ABOUT}",
            options=(
                *self.options, PENALTY, INTERCEPT, WEIGHTS, *C_GRID, *self.listed, *KERNEL, *solving(), CERTIFICATE,
            ),  # fmt: skip
            example=" ".join([*(f"`{one.name}={one.default:g}`" for one in self.options), "`test=test.libsvm`"]),
            kernel_modules=("face", "newton"),
            resolved=partial(over_level, self.name) if self.level else resolved,
            needs=MIRRORED if self.mirrored else BOX,
        )


# Options that a path over a level leaves out.
WHOLE = ("grid", "cmin", "cmax", "c_list", "eps_path", "reference", "part")


def over_level(name: str, spec: Spec, options: dict) -> Spec:
    """Return the model with the intercept, kernel or rule of the options, over the levels that they may ask for."""
    spec, level = resolved(spec, options), LOSSES[name].level
    asked = f"{level}_list"
    if options.get(asked) is None:
        return spec
    if options["c"] is None:
        raise UsageError(f"a path over {level} has one C", "add `c=VALUE`")
    if options["kernel"] is not None:
        raise UsageError(f"a path over {level} is of linear models", "leave out `kernel`")
    given = {one.name: one.default for one in LOSSES[name].options} | dict.fromkeys(WHOLE)
    given |= {} if LOSSES[name].mirrored else {"test": None}  # scores at several levels have no best one
    given |= {"certificate": False} if "certificate" in options else {}
    for other, usual in given.items():
        if options.get(other) != usual:
            why = "lists the whole path" if other in WHOLE else f"does not support `{other}`"
            raise UsageError(f"`{asked}` {why}", f"leave out `{other}`")
    columns = (*spec.columns, *LEVELS[: 3 - LOSSES[name].mirrored])
    return replace(
        spec, parameter=level, grid=partial(level_grid, name), further=None,
        build=partial(level_build, name), columns=columns, toy_grid=(0.3, 0.6),
    )  # fmt: skip


def level_grid(name: str, model, options: dict):
    """Return the values of a path over a level, in increasing order."""
    from screenpath.problem.grid import explicit_grid

    loss = LOSSES[name]
    (one,) = (one for one in loss.options if one.name == loss.level)
    values = [one.checked(value) for value in options[f"{loss.level}_list"]]
    return explicit_grid(values, zero=True)


def level_build(name: str, rows, targets, weights, options: dict):
    from screenpath.problem.levels import Levels

    loss = LOSSES[name]
    one = partial(loss.model, rows, targets, weights, options.get("intercept"))
    return Levels(one, loss.level, options["c"], not loss.mirrored, min(options[f"{loss.level}_list"]))


def build(name: str, rows, targets, weights, options: dict):
    loss, intercept = LOSSES[name], options.get("intercept")
    own = {one.name: options[one.name] for one in loss.options}
    return loss.model(rows, targets, weights, intercept, smoothing=options.get("smoothing"), **own)


def _inexact(lo: float, hi: float, weights) -> float:
    """Return the largest relative error of the bounds of a box, after multiplication by sample and class weights."""
    from fractions import Fraction  # not at the top: other models start faster

    from screenpath.numbers.rounding import UNIT, WEIGHTS_ERROR

    formed = Fraction(hi) - Fraction(lo) not in (1, 2)  # computed by a rounded subtraction
    if weights is None:
        return 2.0 * UNIT * formed
    return 2.0 * UNIT * (formed + (lo % 1.0 != 0.0)) + WEIGHTS_ERROR


def _inside_unit(value) -> bool:
    return 0.0 < value < 1.0


def _not_negative(value) -> bool:
    return value >= 0.0


SVM = Loss(  # Wang 2014, eq. 22; Ogawa 2014, eq. 1
    name="svm", title="linear SVMs (hinge loss)", objective="1/2 ||w||^2 + C sum_i s_i max(0, 1 - y_i x_i.w)",
    kinks=lambda y, o: 1.0, slopes=lambda o: (0.0, 1.0), signed=True, score="accuracy",
    liblinear="L2R_L1LOSS_SVC_DUAL",
)  # fmt: skip
LAD = Loss(  # Wang 2014, eq. 27
    name="lad",
    title="least-absolute-deviations regressions",
    objective="1/2 ||w||^2 + C sum_i s_i |y_i - x_i.w|",
    kinks=lambda y, o: y,
    slopes=lambda o: (-1.0, 1.0),
)
QUANTILE = Loss(
    name="quantile",
    title="quantile regressions",
    objective="1/2 ||w||^2 + C sum_i s_i max((tau - 1) t_i, tau t_i), t_i = y_i - x_i.w",
    kinks=lambda y, o: y,
    slopes=lambda o: (o.tau - 1.0, o.tau),
    options=(
        number(
            "tau", 0.5, _inside_unit, "must lie between 0 and 1", "Quantile level, between 0 and 1.",
            "the median has the level 0.5",
        ),
    ),
    chosen_by="pinball",
    level="tau",
    example="0.1,0.5,0.9",
)  # fmt: skip
SVR = Loss(
    name="svr",
    title="epsilon-insensitive support vector regressions",
    objective="1/2 ||w||^2 + C sum_i s_i max(0, |y_i - x_i.w| - epsilon)",
    kinks=lambda y, o: (y, -y, -o.epsilon),
    slopes=lambda o: (0.0, 1.0),
    options=(
        number(
            "epsilon", 0.1, _not_negative, "must be a number of at least 0",
            "Half width of the tube, in target units.", "0 gives least absolute deviations",
        ),
    ),
    mirrored=True,
    level="epsilon",
    example="0,0.1,0.5",
)  # fmt: skip
LOSSES = {loss.name: loss for loss in (SVM, LAD, QUANTILE, SVR)}
