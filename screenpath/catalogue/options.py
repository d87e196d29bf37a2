"""The options of all models, each declared once; what one is: :mod:`screenpath.catalogue.option`.

Nothing here imports numpy: lists of commands and their help stay quick.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from screenpath.catalogue.option import Option, grouped

# -- options of all path commands --------------------------------------------------------------------------------------

POSITIVE_COUNT: dict[str, Any] = {"kind": "whole", "least": 1}
POINTS: dict[str, Any] = {**POSITIVE_COUNT, "most": 10**6}  # of a grid
VALUES = "int | Sequence[float] | np.ndarray"  # of a keyword: the number of values, or the values
FORCE = Option("force", False, "flag", "Replace an existing file.", group="output")
QUIET = Option("quiet", False, "flag", "Print only errors on stderr.", short="-q", group="output", everyday=True)
LOG_FORMAT = Option(
    "log_format", "text", "choice", "Format of stderr; json: one object a line, for machines.", stated=True,
    choices=("text", "json"), group="output",
)  # fmt: skip
MAX_MEMORY = Option(
    "max_memory", kind="size", group="limits", metavar="SIZE",
    help="Stop before using more private memory than this (2G, 800M), and say what to do.  [default: no limit; "
    "for a kernel matrix half of the free memory]",
)  # fmt: skip
TARGET = Option(
    "target", metavar="COLUMN", changes=True, group="data", everyday=True,
    help="Column of labels in CSV or Parquet; of .npy their file.  [default: target, label, class or y; FILE.labels]",
)  # fmt: skip
ONE_HOT = Option(
    "one_hot", (), "texts", "Encode text columns: a 0/1 feature for each value. a,b and repeatable, as `drop`; "
    "auto: texts of at most 20 values; of two, one feature unless `missing` fills in.",
    metavar="COLUMN", changes=True, group="data", everyday=True, python="models", type="str | Sequence[str]",
    about="Columns of a data frame to encode: a 0/1 feature for each value. ``auto``: texts of at most 20 values; of "
    "two, one feature unless `missing` fills in.",
)  # fmt: skip
SELECTOR: dict[str, Any] = {
    "default": (), "kind": "texts", "metavar": "SELECTOR", "changes": True, "group": "data", "python": "paths",
    "type": "str | Sequence[str]",
}  # fmt: skip
COLUMNS = Option(
    "columns", help="Columns of a table that are features: names, a,b, ranges a:c by position, /regex/; ! takes out "
    "again. Repeatable.  [default: all but the target]", **SELECTOR,
)  # fmt: skip
DROP = Option("drop", help="Leave out columns: a,b, a:c. Otherwise as in `columns`.", everyday=True, **SELECTOR)
ID = Option(
    "id", metavar="COLUMN", changes=True, group="data",
    help="Column of a table that names the rows and is not a feature; it is the first column of predictions.",
)  # fmt: skip
MISSING = Option(
    "missing", "error", "text", metavar="HOW", changes=True, group="data", everyday=True, python="models",
    type="str | float",
    about="What takes the place of missing values (nan): mean, median, zero or a number. mean and median are those of "
    "the training part, in each fold, too. By default, a missing value is an error.",
    help="Missing values: drop, mean, median, zero or a number. drop leaves out the row; mean and median are those of "
    "the training part, in each fold, too. By default, a missing value is an error.",
)  # fmt: skip
MISSING_INDICATOR = Option(
    "missing_indicator", False, "flag", "With a `missing` that fills in: add a 0/1 feature for each column with gaps.",
    changes=True, group="data",
)  # fmt: skip
NA = Option(
    "na", (), "texts", metavar="TEXT", changes=True, group="data",
    help="A further text, or number, that stands for a missing value in a table. Repeatable.  [default: an empty "
    "cell, NA, N/A, NaN, null, ?]",
)  # fmt: skip
WRITTEN: dict[str, Any] = {"metavar": "TEXT", "changes": True, "group": "data"}
SPELLED = (
    NA,
    Option("decimal", ".", help="Decimal mark of the numbers in CSV, such as a comma.", stated=True, **WRITTEN),
    Option("thousands", help="Mark between thousands of the numbers in CSV.  [default: none]", **WRITTEN),
    Option("delimiter", help="What separates the cells of CSV.  [default: , ; or a tab, as in the header]", **WRITTEN),
    Option("encoding", "utf-8", help="Encoding of CSV, such as latin-1 or utf-16.", stated=True, **WRITTEN),
)
CELLS = (MISSING, MISSING_INDICATOR, *SPELLED)
READING = (
    MAX_MEMORY,
    *grouped(
        "data",
        Option("cache", kind="path", metavar="DIR", help="Keep parsed files here, so that each is parsed once."),
        Option("n_features", help="Number of features, if the file shows fewer.", changes=True, **POSITIVE_COUNT),
        Option("zero_based", False, "flag", "Feature indices start at 0 instead of 1.", changes=True), TARGET, ONE_HOT,
    ),
    COLUMNS,
    DROP,
    ID,
    *CELLS,
    Option(
        "weight_column", metavar="COLUMN", changes=True, group="data",
        help="Column of a table with sample weights, as in `weights`; it is not a feature.",
    ),
)  # fmt: skip
POSITIVE = Option(
    "positive", kind="label", metavar="LABEL", changes=True, everyday=True,
    help="Set this label against all others. Otherwise there are two labels, and the larger is +1.",
)  # fmt: skip
CLASS_WEIGHT = Option(
    "class_weight", (), "texts", metavar="LABEL=W", changes=True, python="models", type="Mapping | str",
    about="Weight of each label in the loss, 1 for others; or ``balanced``: n / (classes x samples of the class).",
    help="Weight of a label, repeatable; or 'balanced': n / (classes x samples of the class).",
)  # fmt: skip
WEIGHTS = Option(
    "weights", kind="path", metavar="FILE", help="Sample weights, one number a line; 2 counts a sample twice.",
    python="paths", type="ArrayLike",
    about="How often each sample occurs in the data, of shape (n,): in the loss, in `scale` and in "
    "``class_weight='balanced'``.",
)  # fmt: skip
PENALTY_WEIGHTS = Option(
    "penalty_weights", kind="path", metavar="FILE", python="paths", type="ArrayLike",
    about="How much the penalty counts the weight of each (scaled) feature: numbers above 0, of shape (d,).",
    help="Factor of the penalty on each feature (after `scale`): one number above 0 a line.",
)  # fmt: skip
PENALTY = Option(
    "penalty", "l2", "choice", choices=("l2", "l1", "elastic-net"), stated=True, everyday=True,
    help="l1 and elastic-net: the model sparse-MODEL, with its options. Here the penalty is 1/2 ||w||^2.",
)  # fmt: skip
NET_PENALTY = replace(
    PENALTY, default="elastic-net", python="paths", choices=("elastic-net", "l1", "l2"),
    help="l1 leaves out the L2 part, as `alpha=0` does, and l2 the L1 part, as `beta=0` does.",
)  # fmt: skip
INTERCEPT = Option(
    "intercept", None, "choice", choices=("none", "free", "penalised"), changes=True, python="models",
    everyday=True,
    help="Add an unpenalised (free) or a penalised intercept. free is as in LIBSVM; penalised adds a constant feature "
    "of value `bias`, by default 1.  [default: free, or penalised with `bias`]",
)  # fmt: skip
C_GRID = grouped(
    "grid",
    Option(
        "grid", metavar="N", help="Number of grid points.", usual=100, python="models", **POINTS, everyday=True,
        type=f"{VALUES} | EpsilonGrid",
        about="Number of log-spaced values of C from `cmin` to `cmax`, or the values themselves, walked in increasing "
        "order; of functions of arrays also an EpsilonGrid.",
    ),
    Option("cmin", None, "positive", "Lower end of the log-spaced grid.", usual=0.01, python="models", everyday=True),
    Option("cmax", None, "positive", "Upper end of the log-spaced grid.", usual=10.0, python="models", everyday=True),
    Option("c_list", None, "numbers", "The grid itself, for example 0.1,1,10."),
    Option(
        "eps_path", None, "positive", metavar="EPS",
        help="Choose the steps so that every C from `cmin` to `cmax` is solved to the relative gap EPS.",
    ),
    Option("c", None, "positive", "Solve one C instead of a grid.", metavar="C"),
    Option(
        "reference", None, "positive", metavar="C",
        help="With `c`: solve this C first (step 0) and screen the problem (step 1) from it, once.",
    ),
    Option(
        "chunk", metavar="M", python="paths", **POSITIVE_COUNT,
        help="ssnsv, essnsv: use one region for M steps, from a feasible point found by line search (Ogawa 2013).",
    ),
    Option(
        "chunk_form", None, "choice", choices=("C", "s"), usual="C", python="paths",
        help="How to bound the loss of that point: prove before use (C), or try and prove later (s).",
    ),
    changes=True,
)  # fmt: skip
WAY: dict[str, Any] = {"stated": True, "changes": True, "group": "screening and solver", "python": "models"}
RULE = Option(
    "rule", "auto", "plugin", **WAY,
    help="Screening rule: auto (dvi+gap, or rows left unread; with a kernel none); none; gap (dynamic, while solving); "
    "a static rule, before each solve: dvi (= bt1), bt2, it, ssnsv, essnsv; a static one with +gap; or heuristic, "
    "sieve (guess, check, repeat: safe only by the certificate); or your own class, mine.py:MyRule, also with +gap.",
)  # fmt: skip
TOL = Option("tol", 1e-6, "share", "Relative duality gap of every step on the full data; 1e-12 polishes.", **WAY)
MAX_EPOCHS = Option(
    "max_epochs", 100_000, help="Most sweeps or Newton iterations of a step.", stated=True, changes=True,
    group="limits", python="models", **POSITIVE_COUNT,
)  # fmt: skip
TIME_LIMIT = Option(
    "time_limit", None, "positive", metavar="SECONDS", group="limits", python="paths",
    about="Seconds for the whole call, not counting the compilation of kernels; later steps are ``skipped``, with "
    "coefficients of nan.",
    help="Stop the whole command after this time; on a first run, kernels finish compiling first.",
)  # fmt: skip
SEED = Option("seed", 0, "whole", "Seed of the random order.", least=0, **WAY)
THREADS = Option(
    "threads", 1, stated=True, group="limits", python="models", **POSITIVE_COUNT,
    help="Threads for passes over all rows; on dense rows in memory, for whole steps.",
)  # fmt: skip
AUDIT = Option(
    "audit", False, "flag", "Solve each step again unscreened, and count unsafe decisions.", changes=True,
    group="screening and solver",
)  # fmt: skip
BIAS = Option(
    "bias", 0.0, "number", "Value of a constant, penalised feature.", stated=True, changes=True, python="models",
    valid=lambda value: abs(value) <= 1e150, demand="must be a number from -1e150 to 1e150",
)  # fmt: skip
SCALE = Option(
    "scale", "none", "choice", choices=("none", "maxabs", "standard", "l2"), stated=True, changes=True, group="data",
    python="models", everyday=True,
    help="Scale the features (l2: the rows). Coefficients are reported in the file's units.",
    about="Scaling of the features (l2: of the rows); coefficients are reported in the units of the data.",
)  # fmt: skip
STORAGE = Option(
    "storage", "auto", "choice", "Form of the rows in memory; auto decides by density.", stated=True,
    choices=("auto", "dense", "sparse"), changes=True, group="data", python="paths",
)  # fmt: skip
DTYPE = Option(
    "dtype", "float64", "choice", "Type of the stored values; gaps and decisions are float64.", stated=True,
    choices=("float64", "float32"), changes=True, group="data", python="paths", type="DTypeLike",
)  # fmt: skip
PREPARATION = (BIAS, SCALE, STORAGE, DTYPE)
OUTPUT = grouped(
    "output",
    Option(
        "out", None, "path", short="-o", metavar="DIR", everyday=True,
        help="Run folder to write. - prints the step table to stdout, and nothing else.  [default: runs/MODEL-DATA]",
    ),
    Option(
        "format", "csv", "choice", "Format of the step table; parquet adds to steps.csv when the path is complete.",
        choices=("csv", "json", "parquet"), stated=True, changes=True,
    ),
    Option(
        "coefficients", None, "choice", "Format of the coefficients.  [default: csv; none with -o -]",
        choices=("csv", "npz", "none"), changes=True,
    ),
    Option(
        "test", kind="path", metavar="FILE", help="Score every step on this data file.", everyday=True, type="tuple",
    ),
    Option("resume", False, "flag", "Continue the run in the folder (or start it).", everyday=True),
    replace(FORCE, help="Replace the run in the folder.", everyday=True),
    QUIET,
    Option(
        "progress", None, "switch",
        "Show progress on stderr: a bar on a terminal, else a line now and then.  [default: after two seconds, unless "
        "`quiet`]",
    ),
    LOG_FORMAT,
)  # fmt: skip
CERTIFICATE = Option(
    "certificate", False, "flag", "Write a certificate for the independent checker: screenpath verify RUN.",
    changes=True, group="output",
)  # fmt: skip
CLUSTER = grouped(
    "cluster",
    Option(
        "scheduler", metavar="ADDRESS",
        help="Spread the work over the Dask workers of this scheduler (tcp://node:8786): passes over a shard folder, "
        "values of beta (sparse-svm), folds (cv).",
    ),
    Option(
        "connect_timeout", 10.0, "positive", "Time for the scheduler to answer in.", metavar="SECONDS", stated=True
    ),
)  # fmt: skip
PART_OF = Option(
    "part", kind="part", metavar="I/K", changes=True, group="cluster",
    help="Compute part I of K of the grid (of cv: of the folds), one for each task of a job array; screenpath merge "
    "joins the runs.",
)  # fmt: skip
JOBS = Option("jobs", 1, metavar="N", stated=True, group="limits", **POSITIVE_COUNT)
PATH = (*READING, *PREPARATION, *CLUSTER, PART_OF, *OUTPUT)


def solving(rule: Option = RULE, solvers: tuple = ("auto", "newton", "cd"), *, seeded=True, threaded=True) -> tuple:
    """Return the options of rule, solver, accuracy and limits; ``seeded`` is a solver that draws random numbers."""
    text = f"One of {', '.join(solvers)}; or your own class, mine.py:MySolver."
    return (
        rule, Option("solver", "auto", "plugin", text, **WAY), TOL, MAX_EPOCHS, TIME_LIMIT,
        *([SEED] if seeded else []), *([THREADS] if threaded else []), AUDIT,
    )  # fmt: skip


# -- options of single models ------------------------------------------------------------------------------------------

WAYS = ("one_vs_one", "one_vs_rest")  # to tell more than two labels apart by models of two
ONE_VS_REST = Option(
    "one_vs_rest", False, "flag", changes=True,
    help="More than two labels: fit each against the rest; the largest decision value wins. Of svm also with a kernel.",
)  # fmt: skip
ONE_VS_ONE = Option(
    "one_vs_one", False, "flag", changes=True,
    help="More than two labels: fit each pair of them on their rows, with or without a kernel; most votes win, as in "
    "LIBSVM.",
)  # fmt: skip
NO_KERNEL = (
    "sigmoid", "the kernel sigmoid is not positive definite: its problem is not convex, so no gap can be proven",
    "use `kernel=rbf`; or pass its values, less their smallest eigenvalue on the diagonal, with `kernel=precomputed` "
    "(commands: the guide, kernels.md)",
)  # fmt: skip
KERNEL = (
    Option(
        "kernel", None, "choice", choices=("rbf", "laplacian", "linear", "poly", "precomputed"), never=NO_KERNEL,
        python="models", everyday=True, type="str | Callable",
        help="Fit a kernel model. The kernel is exp(-gamma |x-z|^2), exp(-gamma |x-z|_1), x.z, (gamma x.z + "
        "coef0)^degree, or given in DATA.  [default: a linear model]",
        about="``exp(-gamma |x-z|^2)``, ``exp(-gamma |x-z|_1)``, ``x.z``, ``(gamma x.z + coef0)^degree``; "
        "precomputed: ``X`` has the kernel of its rows with the training rows; or a function of two arrays of rows, "
        "shapes (n, d) and (m, d), that returns their kernel, shape (n, m). None fits a linear model.",
    ),
    Option(
        "gamma", metavar="GAMMA", help="All but linear: a number; NUMBER/d, where d counts features; or scale: 1 / (d "
        "x the variance of all values).", usual="1/d",
        python="models", type="float | str",
    ),
    Option("degree", help="Degree of poly.", usual=3, python="models", **POSITIVE_COUNT),
    Option("coef0", None, "number", "Constant of poly, at least 0.", usual=0.0, python="models"),
    Option(
        "smoothing", kind="positive", metavar="WIDTH", changes=True, python="models",
        help="How far from its kinks the loss is quadratic, in units of the targets: of lad Huber's loss.  [default: "
        "the exact loss]",
    ),
    Option(
        "keep_rows", False, "flag", changes=True,
        help="Keep the training rows of a kernel model in the run folder: predict and export then need no other file.",
    ),
)  # fmt: skip
LAMBDA_GRID = grouped(
    "grid",
    Option(
        "grid", metavar="N", help="Points lambda_max / k, k = 1..N.", everyday=True, usual=20, python="models",
        type=VALUES, **POINTS,
        about="Number K of values ``lambda_max / k``, k = 1..K; or the values, walked from the largest down (of "
        "estimators those of ``C = 1 / (2 lambda)``).",
    ),
    Option("log", False, "flag", "Space the values evenly on a log scale instead.", python="models"),
    Option(
        "lambda_min_ratio", None, "share", "With `log`: last value divided by lambda_max.", usual=0.05, python="models"
    ),
    Option("lambda_list", None, "numbers", "The grid itself, for example 10,5,1."),
    changes=True,
)  # fmt: skip
L1_RULE = replace(
    RULE, default="vi+gap", help="Screening rule: none, vi (from the previous lambda), gap (dynamic), or vi+gap."
)
PAIR_GRID = grouped(
    "grid",
    Option(
        "betas", metavar="N", help="Values of beta, from beta_max down.", usual=10, python="models", everyday=True,
        type=VALUES, **POINTS,
        about="Number of values, log-spaced from ``beta_max`` to `beta_min_ratio` times it; or the values. 0 may be "
        "one of them: the L2 penalty alone.",
    ),
    Option(
        "alphas", metavar="N", help="Values of alpha for each beta.", usual=100, python="models", everyday=True,
        type=VALUES, **POINTS,
        about="Number of values for each beta, log-spaced from ``alpha_max(beta)`` to `alpha_min_ratio` times it; or "
        "the values. 0 may be one of them: the L1 penalty alone.",
    ),
    Option(
        "beta_min_ratio", None, "share", "Last beta divided by beta_max.", usual=0.05, ends=(False, True),
        python="models",
    ),
    Option(
        "alpha_min_ratio", None, "share", "Last alpha divided by alpha_max(beta).", usual=0.01, ends=(False, True),
        python="models",
    ),
    Option(
        "beta", None, "numbers", "The values of beta themselves, for example 0.1,0.01; 0 leaves the L2 penalty alone."
    ),
    Option(
        "alpha", None, "numbers",
        help="The values of alpha themselves, the same for each beta; 0 (the last) leaves the L1 penalty alone.",
    ),
    Option(
        "references", 0, "whole", metavar="M", least=0, stated=True, python="paths",
        help="With `alpha`: log-spaced steps to add before each value, so that screening starts near it.",
    ),
    changes=True,
)  # fmt: skip
LOSS = Option(
    "loss", "hinge", "choice", "hinge: smoothed, see `smoothing`; or squared-hinge: 1/2 max(0, 1 - margin)^2.",
    choices=("hinge", "squared-hinge"), stated=True, changes=True, python="models",
)  # fmt: skip
SMOOTHING = Option(
    "smoothing", 0.5, "share", "Width of the hinge's quadratic part; 0 is the exact hinge.", metavar="GAMMA",
    stated=True, changes=True, ends=(True, False), demand="must be at least 0 and below 1", python="models",
)  # fmt: skip
NONNEGATIVE = Option(
    "nonnegative", False, "flag", "Let no feature have a weight below 0.", changes=True, python="models", everyday=True
)
SIGNS = Option(
    "signs", kind="path", metavar="FILE", python="paths", type="ArrayLike",
    about="Of the weight of each feature, of shape (d,): 1 for at least 0, -1 for at most 0, 0 for any.",
    help="Sign of the weight of each feature, one a line: 1 (at least 0), -1 (at most 0) or 0 (any).",
)  # fmt: skip
GROUPS = Option(
    "groups", kind="path", metavar="FILE", python="paths", type="ArrayLike",
    about="Group of each feature, labels of shape (d,): the penalty on it is ``beta p_g ||w_g||``, ``p_g`` the root "
    "of its size, in place of the L1 norm.",
    help="Group of each feature, as in `1 1 2 2 3`, or CSV feature,group[,weight]: the penalty is beta p_g ||w_g||, "
    "p_g the weight, or the root of the group's size, in place of the L1 norm.",
)  # fmt: skip
L1_SHARE = Option(
    "l1_share", 0.0, "share", metavar="TAU", stated=True, changes=True, ends=(True, False), python="paths",
    demand="must be at least 0 and below 1",
    help="With `groups`: share TAU of beta that stays on the L1 norm; the groups have 1 - TAU.",
)  # fmt: skip
FIRST = Option(
    "first", "features", "choice", "What sifs screens first; the decisions are the same.",
    choices=("features", "samples"), stated=True, changes=True, group="screening and solver", python="models",
)  # fmt: skip
SPARSE_RULE = replace(
    RULE, default="sifs+gap",
    help="Screening rule: sifs, iss (samples) or ifs (features), each also with +gap (dynamic); gap or none.",
)  # fmt: skip
GRID_JOBS = replace(
    JOBS, python="paths", help="Processes that share the values of beta, unless there is one alpha: same results."
)
# -- cross-validation -------------------------------------------------------------------------------------------------

LOO = "loo"  # in place of the number of folds: each row is left out
FOLDS = (
    *grouped(
        "cross-validation",
    Option(
        "folds", None, "whole", "Number of folds; loo leaves out each row.",
        least=2, choices=(LOO,), metavar="K", usual=5, everyday=True,
    ),
    Option("repeats", metavar="R", help="Number of partitions into folds, each drawn anew.", usual=1, **POSITIVE_COUNT),
    Option(
        "stratify", None, "switch", "Keep the proportions of the classes in each fold.  [default: on for classifiers]"
    ),
    Option("fold_seed", 0, "whole", "Seed for drawing the folds.", least=0, stated=True),
    Option("fold_file", kind="path", metavar="FILE", help="Fold of each sample, one whole number a line."),
    Option(
        "predictions", kind="path", metavar="FILE",
        help="Write what is predicted for each held-out row at the best step, as CSV, in the order of the data.",
    ),
    Option("fold_column", metavar="COLUMN", help="Column of a table with the fold of each row, such as the site."),
    Option(
        "group_column", metavar="COLUMN",
        help="Column of a table whose rows of one value stay in one fold, such as the patient.",
    ),
    Option(
        "score", None, "choices", "Held-out score; of several, a,b, the first chooses.  [default: accuracy, "
        "pinball (quantile) or mae]", metavar="SCORE", everyday=True,
        choices=("accuracy", "balanced-accuracy", "f1", "auc", "mae", "mse", "pinball", "r2"),
    ),
    Option(
        "threshold", None, "constraint", metavar="NAME=VALUE", choices=("recall", "precision", "specificity"),
        help="Two labels: decide by a threshold at which held-out rows have at least this recall, precision or "
        "specificity of the label +1, such as recall=0.9.  [default: decisions above 0 are +1]",
    ),
    Option("calibrate", False, "flag", "Two labels: fit probabilities to the decisions of held-out rows (Platt)."),
    ),
    replace(JOBS, help="Processes that share the folds. The results are the same.", everyday=True),
)  # fmt: skip
UNTIL_TURN = grouped(
    "cross-validation",
    Option(
        "until_turn", False, "flag",
        "Extend the grid, with its spacing, until the mean score over the folds has turned.",
    ),
    Option(
        "turn_points", None, "whole", "Grid points that `until_turn` may add.", least=1, metavar="N", usual=100
    ),
)  # fmt: skip
CERTIFY = grouped(
    "cross-validation",
    Option(
        "certify", False, "flag", "Bound the cross-validation error at every C from `cmin` to `cmax`.",
        about="Bound the cross-validation error at every C between the ends of the grid (two classes; Shibagaki et al. "
        "2015). ``certificate_`` then has ``best_error``, found at ``best_C``, ``lower_bound`` and ``difference``.",
    ),
    Option(
        "certify_to", None, "share", metavar="DIFFERENCE", ends=(True, True),
        help="Refine the grid until no C of the range can be better than the best one found by more than this.",
    ),
    Option("certify_points", None, "whole", "Grid points that `certify_to` may add.", least=0, metavar="N", usual=1000),
)  # fmt: skip
TUNING = grouped(
    "cross-validation",
    Option(
        "gammas", None, "names", metavar="N|LIST", changes=True,
        help="Cross-validate N values of a kernel's gamma, from 0.01 to 10 times `gamma=scale`, or a list of values, "
        "and choose the best pair of gamma and C.",
    ),
    Option(
        "libsvm_grid", False, "flag", changes=True,
        help="The values that LIBSVM's grid.py tries: C = 2^-5, 2^-3 ... 2^15, gamma = 2^-15, 2^-13 ... 2^3.",
    ),
)  # fmt: skip
EPSILONS = grouped(
    "cross-validation",
    Option(
        "epsilons", None, "numbers", changes=True,
        help="Behind a kernel: cross-validate these values of epsilon, with every gamma, and choose the best of all.",
    ),
)  # fmt: skip
