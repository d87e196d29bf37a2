"""Options that the commands share, as decorators; a model's command is a stack of these and a Spec."""

from __future__ import annotations

import math

import click

from screenpath.data.memory import parse_bytes
from screenpath.errors import UsageError
from screenpath.solvers import NAMES

RULE_HELP = (
    "Screening rule: none; gap (dynamic, while solving); a static rule, before each solve: dvi (= bt1), bt2, it, "
    "ssnsv, essnsv; a static one with +gap; or heuristic (guess, check, repeat: safe only by the certificate)."
)


def stack(*decorators):
    """Join decorators into one; the options appear in --help in the given order."""

    def apply(function):
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


class NumberList(click.ParamType):
    """Comma-separated numbers."""

    name = "NUMBERS"

    def convert(self, value, param, ctx):
        """Return a list of floats."""
        if isinstance(value, list):
            return value
        numbers = []
        for token in value.split(","):
            try:
                numbers.append(float(token))
            except ValueError:
                self.fail(f"'{token.strip()}' is not a number; write for example 0.1,1,10", param, ctx)
        return numbers


class Finite(click.ParamType):
    """A finite number, optionally positive."""

    name = "NUMBER"

    def __init__(self, positive: bool = False):
        self.positive = positive

    def convert(self, value, param, ctx):
        """Return a float."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"'{value}' is not a number", param, ctx)
        if not math.isfinite(number) or (self.positive and number <= 0.0):
            self.fail(f"{value} is not a {'positive ' if self.positive else ''}finite number", param, ctx)
        return number


class Size(click.ParamType):
    """A number of bytes, with K, M, G or T behind it (1024-based)."""

    name = "SIZE"

    def convert(self, value, param, ctx):
        """Return an int."""
        if value is None or isinstance(value, int):
            return value
        try:
            return parse_bytes(value)
        except UsageError as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)


data_argument = click.argument("data", metavar="DATA", type=click.Path())

force_option = click.option("--force", is_flag=True, help="Replace an existing file.")

memory_option = click.option(
    "--max-memory",
    metavar="SIZE",
    type=Size(),
    help="Private memory that may be used (2G, 800M): an error says what to do before it is crossed.  [default: no "
    "limit; for a kernel matrix half of the free memory]",
)

reading_options = stack(
    memory_option,
    click.option(
        "--cache", metavar="DIR", type=click.Path(), help="Keep what was parsed here: the same file is parsed once."
    ),
    click.option("--n-features", type=click.IntRange(min=1), help="Number of features, where the file shows fewer."),
    click.option("--zero-based", is_flag=True, help="Feature indices start at 0 instead of 1."),
)

label_options = stack(
    click.option(
        "--positive",
        metavar="LABEL",
        type=Finite(),
        help="This label against all others (default: two labels, the larger is +1).",
    ),
)

class_weight_option = click.option(
    "--class-weight",
    metavar="LABEL=W",
    multiple=True,
    help="Weight of a label, repeatable; or 'balanced': n / (classes x samples of the class).",
)

weights_option = click.option(
    "--weights", metavar="FILE", type=click.Path(), help="Sample weights, one number a line; 2 is the sample twice."
)

c_grid_options = stack(
    click.option("--grid", metavar="N", type=click.IntRange(min=1), help="Number of grid points.  [default: 100]"),
    click.option("--cmin", type=Finite(positive=True), help="Lower end of the log-spaced grid.  [default: 0.01]"),
    click.option("--cmax", type=Finite(positive=True), help="Upper end of the log-spaced grid.  [default: 10]"),
    click.option("--c-list", type=NumberList(), help="The grid itself, for example 0.1,1,10."),
    click.option(
        "--eps-path",
        metavar="EPS",
        type=Finite(positive=True),
        help="Choose the points so that every C from --cmin to --cmax is solved to the relative gap EPS by a step.",
    ),
    click.option("--c", metavar="C", type=Finite(positive=True), help="A single problem instead of a grid."),
    click.option(
        "--reference",
        metavar="C",
        type=Finite(positive=True),
        help="With --c: solve this C first (step 0) and screen the problem (step 1) from it, once.",
    ),
    click.option(
        "--chunk",
        metavar="M",
        type=click.IntRange(min=1),
        help="ssnsv, essnsv: one rule for M grid points, from a feasible point found by line search (Ogawa 2013).",
    ),
    click.option(
        "--chunk-form",
        type=click.Choice(["C", "s"]),
        help="How that point's loss is bounded: proven before use (C), or tried and proven later (s).  [default: C]",
    ),
)


def solving_options(rule="dvi+gap", solvers=NAMES, rule_help=RULE_HELP, seeded=True, threaded=True):
    """Return the options of rule, solver, accuracy and limits.

    Parameters
    ----------
    rule : str
        Default of --rule.
    solvers : sequence of str
        Names for the help text.
    rule_help : str
    seeded : bool
        Whether the solver draws random numbers.
    threaded : bool
        Whether there is work for several threads.
    """
    seed = click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of the random order.")
    threads = click.option(
        "--threads",
        default=1,
        show_default=True,
        type=click.IntRange(min=1),
        help="For passes over all rows; on dense rows in memory, for whole grid points.",
    )
    return stack(
        click.option("--rule", default=rule, show_default=True, help=rule_help),
        click.option("--solver", default="auto", show_default=True, help=f"One of {', '.join(solvers)}."),
        click.option(
            "--tol",
            default=1e-6,
            show_default=True,
            type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
            help="Relative duality gap of every grid point, on the full data.",
        ),
        click.option(
            "--max-epochs",
            default=100_000,
            show_default=True,
            type=click.IntRange(min=1),
            help="Sweeps or Newton iterations a grid point.",
        ),
        click.option(
            "--time-limit", metavar="SECONDS", type=Finite(positive=True), help="For the whole command, from its start."
        ),
        *([seed] if seeded else []),
        *([threads] if threaded else []),
        click.option("--audit", is_flag=True, help="Solve each step unscreened too and count unsafe decisions."),
    )


preparation_options = stack(
    click.option(
        "--bias", default=0.0, show_default=True, type=Finite(), help="Value of a constant feature; 0 for none."
    ),
    click.option(
        "--scale",
        default="none",
        show_default=True,
        type=click.Choice(["none", "maxabs", "standard", "l2"]),
        help="Scaling of the features (l2: of the rows); coefficients are reported in the file's units.",
    ),
    click.option(
        "--storage",
        default="auto",
        show_default=True,
        type=click.Choice(["auto", "dense", "sparse"]),
        help="How rows are kept in memory; auto decides by density.",
    ),
    click.option(
        "--dtype",
        default="float64",
        show_default=True,
        type=click.Choice(["float64", "float32"]),
        help="Type of the stored values; gaps and decisions are float64.",
    ),
)

output_options = stack(
    click.option(
        "-o",
        "--out",
        metavar="DIR",
        help="Run folder; - writes the step table to stdout and nothing else.  [default: runs/MODEL-DATA]",
    ),
    click.option(
        "--format", type=click.Choice(["csv", "json"]), default="csv", show_default=True, help="Of the step table."
    ),
    click.option(
        "--coefficients",
        type=click.Choice(["csv", "npz", "none"]),
        help="File of the coefficients.  [default: csv; none with -o -]",
    ),
    click.option("--test", metavar="FILE", type=click.Path(), help="Score every step on this LIBSVM file."),
    click.option("--resume", is_flag=True, help="Continue the run in the folder (or start it)."),
    click.option("--force", is_flag=True, help="Replace the run in the folder."),
    click.option("--quiet", is_flag=True, help="Nothing on stderr but errors."),
    click.option(
        "--progress/--no-progress",
        default=None,
        help="Progress on stderr: a bar on a terminal, else a line now and then.  [default: on unless --quiet]",
    ),
)

certificate_option = click.option(
    "--certificate", is_flag=True, help="Write what is claimed, for the independent checker: screenpath verify RUN."
)

cluster_options = stack(
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Spread the work over the Dask workers of this scheduler (tcp://node:8786): passes over a shard folder, "
        "values of beta (sparse-svm), folds (cv).",
    ),
    click.option(
        "--local-cluster", metavar="N", type=click.IntRange(min=1), help="The same with N worker processes here."
    ),
)


def named_cluster(options: dict) -> bool:
    """Tell whether the options name a cluster, and refuse two of them."""
    named = [name for name in ("scheduler", "local_cluster") if options.get(name) is not None]
    if len(named) == 2:
        raise UsageError("--scheduler and --local-cluster are two clusters", "use one of them")
    if named and options.get("jobs", 1) > 1:
        raise UsageError("--jobs are processes here, a cluster has its own workers", "use one of the two")
    return bool(named)


path_options = stack(data_argument, reading_options, preparation_options, cluster_options, output_options)
