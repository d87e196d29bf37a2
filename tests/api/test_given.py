"""What Python functions are given: it is used as it is meant, or named in one error."""

import inspect
import io

import numpy as np
import pytest
import scipy.sparse as sp

import screenpath
from screenpath.errors import DataError, ScreenpathError, UsageError
from screenpath.sklearn import SparseSVMClassifierCV, SVMClassifier, SVMClassifierCV
from tests.conftest import two_classes

X, Y = two_classes(n=40, d=4)


@pytest.mark.parametrize("dtype", [int, "int8", bool, "float16", ">f8", complex, "foo"])
def test_types_that_would_lose_digits(dtype):
    """Integers once cut what is behind the point, and the result was certified."""
    readers = (
        lambda: screenpath.svm_path(X, Y, grid=[0.1], dtype=dtype),
        lambda: screenpath.sparse_svm_path(X, Y, betas=2, alphas=2, dtype=dtype),
        lambda: screenpath.read_libsvm(io.BytesIO(b"1 1:0.7\n"), dtype=dtype),
        lambda: screenpath.read_data(io.BytesIO(b"a,class\n0.7,1\n"), dtype=dtype),
    )
    for read in readers:
        with pytest.raises(UsageError, match="`dtype` must be float64 or float32"):
            read()


@pytest.mark.parametrize("form", ["lil", "dok", "coo", "bsr", "dia", "csc"])
def test_every_sparse_form(form):
    rows = getattr(sp, f"{form}_matrix")(np.where(np.abs(X) > 0.5, X, 0.0))
    path, other = (screenpath.svm_path(one, Y, grid=3) for one in (rows, rows.tocsr()))
    assert np.array_equal(path.coefficients, other.coefficients)
    assert np.array_equal(path.predict(rows), other.predict(rows.toarray()))


@pytest.mark.parametrize(("where", "what"), [("indices", 4), ("indices", -1), ("indptr", -1), ("indptr", 10**9)])
def test_sparse_rows_with_subscripts_out_of_range(where, what):
    rows = sp.csr_array(X)
    getattr(rows, where)[3] = what
    path = screenpath.svm_path(X, Y, grid=[1.0])
    for read in (lambda: screenpath.svm_path(rows, Y, grid=3), lambda: path.predict(rows)):
        with pytest.raises(DataError, match="not a valid sparse matrix"):
            read()


def test_sparse_rows_stay_as_they_are():
    """Also what is stored behind the last row, and wide subscripts; single precision of new rows is no other number."""
    rows = sp.csr_array(X)
    rows.data, rows.indices = np.append(rows.data, 7.0), np.append(rows.indices, 0).astype(np.int64)
    rows.indptr = rows.indptr.astype(np.int64)
    path = screenpath.svm_path(rows, Y, grid=[1.0], scale="l2")
    assert rows.data.size == X.size + 1 and rows.indices.dtype == rows.indptr.dtype == np.int64
    assert np.array_equal(path.predict(rows), path.predict(X)) and rows.data.size == X.size + 1
    single = X.astype(np.float32)
    expected = path.decision_function(sp.csr_array(single.astype(np.float64)))
    assert np.array_equal(path.decision_function(sp.csr_array(single)), expected)


def test_columns_without_names():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    path = screenpath.svm_path(pandas.DataFrame(X), Y, grid=3)
    assert np.array_equal(path.coefficients, screenpath.svm_path(X, Y, grid=3).coefficients)
    assert path.feature_names == ("0", "1", "2", "3")
    assert np.array_equal(path.predict(pandas.DataFrame(X)), path.predict(X))
    with pytest.raises(DataError, match="the column 'b' has missing, nan or infinite values"):
        screenpath.svm_path(pandas.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 1.0, np.nan, 1.0)}), Y)


def test_sparse_columns_of_pandas():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    frame = pandas.DataFrame.sparse.from_spmatrix(sp.csr_array(X * (X > 0.0)), columns=list("abcd"))
    path = screenpath.svm_path(frame, Y, grid=3)
    assert path.feature_names == tuple("abcd")
    assert np.array_equal(path.coefficients, screenpath.svm_path(X * (X > 0.0), Y, grid=3).coefficients)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, "table"])
def test_infinite_values_are_not_filled_in(form):
    rows = X.copy()
    rows[0, 0], rows[2, 1] = np.nan, np.inf
    if form == "table":
        pytest.importorskip("narwhals")
        form = pytest.importorskip("pandas").DataFrame
        where = "the column '1' has infinite values\n  leave out their rows$"
    else:
        where = r"infinite values, first X\[2, 1\] = inf\n  leave out X\[2\] and its like$"
    with pytest.raises(DataError, match=where):
        screenpath.svm_path(form(rows), Y, missing="median")


def test_a_lazy_table_has_to_be_collected():
    polars = pytest.importorskip("polars")
    with pytest.raises(DataError, match="two dimensions.*\n.*collect"):
        screenpath.svm_path(polars.DataFrame(X).lazy(), Y)


def test_a_record_batch_is_no_table():
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("narwhals")
    batch = pyarrow.RecordBatch.from_arrays([pyarrow.array(x) for x in X.T], names=list("abcd"))
    with pytest.raises(DataError, match="RecordBatch cannot be read"):
        screenpath.svm_path(batch, Y)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.full((2, 4), np.nan), r"nan or infinite values, first X\[0, 0\] = nan\n  leave out X\[0\] and its like"),
        (np.full((2, 4), -np.inf), "nan or infinite"),
        (X + 1j, "complex"), (np.full((2, 4), "a"), "not numbers"), (X.astype("datetime64[s]"), "not numbers"),
        ([[10**400] * 4], "not all numbers"), ([[1.0] * 4, [1.0] * 3], "not all of one length"),
        (np.ma.masked_array(X, mask=X > 1.0), "masked"),
    ],
)  # fmt: skip
def test_rows_that_are_no_numbers(rows, said):
    with pytest.raises(DataError, match=r"first X\[1, 3\] = inf"):
        screenpath.svm_path(sp.csc_array([[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, np.inf]]), [0, 1])
    path = screenpath.svm_path(X, Y, grid=[1.0])
    for read in (lambda: path.predict(rows), lambda: screenpath.svm_path(rows, Y[: len(rows)])):
        with pytest.raises(DataError, match=said):
            read()


def test_masked_labels_and_weights():
    masked = np.ma.masked_array(Y, mask=Y > 0.0)
    with pytest.raises(DataError, match="the labels have masked values"):
        screenpath.svm_path(X, masked)
    with pytest.raises(DataError, match="the weights have masked values"):
        screenpath.svm_path(X, Y, sample_weight=masked**2)
    hidden_nothing = np.ma.masked_array(X, mask=False)
    assert screenpath.svm_path(hidden_nothing, Y, grid=2).certified


def test_weights_that_overflow_together():
    with pytest.raises(UsageError, match="the largest weight is 1e.198, and must lie between"):
        screenpath.svm_path(X, Y, sample_weight=np.full(40, 1e99), class_weight={1: 1e99})


def test_numbers_at_the_end_of_their_range():
    """One error of ours, or a step that says why; numpy warned."""
    for weights, words in (
        ({"sample_weight": np.full(40, 1e300)}, "the largest weight is 1e.300.*\n.*divide all weights"),
        ({"sample_weight": np.full(40, 1e-320)}, "the largest weight is .*e-321.*\n.*multiply all weights"),
        ({"class_weight": {1: 1e300}}, "the weight of label 1 must be from 0 to 1e.100"),
    ):  # fmt: skip
        for path in (screenpath.svm_path, screenpath.l1_svm_path, screenpath.sparse_svm_path):
            with pytest.raises(UsageError, match=words):
                path(X, Y, **weights)
    for path in (screenpath.svm_path, screenpath.lad_path, screenpath.sparse_svm_path):
        with pytest.raises(UsageError, match="`bias` must be a number from -1e150 to 1e150, not 1e.200"):
            path(X, Y, bias=1e200)
    for size in (1e300, 1e-300):
        with pytest.raises(UsageError, match="the least penalty weight is 1e.300, and must lie between"):
            screenpath.l1_svm_path(X, Y, penalty_weights=np.full(X.shape[1], size))
    for path in (screenpath.lad_path, screenpath.quantile_path, screenpath.svr_path):
        with pytest.raises(DataError, match="the losses at w = 0 add up to more than"):
            path(X, Y * 1e308, grid=2)
    with pytest.raises(DataError, match="the kernel of row 1 with itself exceeds"):
        screenpath.kernel_svm_path(X * 1e200, Y, kernel="linear", grid=2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize("grid", [[1e308], [1e300, 1e308], [1e-308, 1e308]])
@pytest.mark.parametrize("path", [screenpath.svm_path, screenpath.lad_path, screenpath.kernel_svm_path])
def test_an_infinite_gap_is_not_within_a_part_of_an_infinite_primal_value(path, grid, intercept):
    """Such steps were certified."""
    found = path(X, Y, grid=grid, intercept=intercept, max_epochs=20)
    assert found[-1].status == "failed" and "overflow" in found[-1].reason and not np.isfinite(found[-1].gap)
    for step in found:
        assert step.status != "certified" or np.isfinite([step.primal, step.dual, step.gap]).all()


@pytest.mark.parametrize("weights", [[1, 2], {1: None}, {1: "x"}, {1: -1.0}, {1: np.nan}])
def test_class_weights_that_are_none(weights):
    with pytest.raises(UsageError, match=r"class_weight. must be|the weight of label 1 must be"):
        screenpath.svm_path(X, Y, class_weight=weights)
    with pytest.raises(UsageError, match="the weights are not all numbers"):
        screenpath.svm_path(X, Y, sample_weight=["a"] * 40)


@pytest.mark.parametrize("count", [2.7, "3", True, [], None])
def test_counts_and_lists_of_parameters(count):
    for make in (
        lambda: screenpath.sparse_svm_path(X, Y, betas=count, alphas=2),
        lambda: screenpath.sparse_svm_path(X, Y, betas=2, alphas=count),
        lambda: screenpath.l1_svm_path(X, Y, grid=count),
    ):
        with pytest.raises(UsageError, match="number of grid points or a list|list of parameters is empty"):
            make()


PATHS = (
    screenpath.svm_path, screenpath.lad_path, screenpath.l1_svm_path, screenpath.sparse_svm_path,
    screenpath.kernel_svm_path,
)  # fmt: skip


@pytest.mark.parametrize("value", ["x", None, [1.0, 2.0], np.ones(2), {"a": 1}, object(), 10**400])
@pytest.mark.parametrize("path", PATHS)
def test_options_of_another_type(path, value):
    """Each is one error that names the option, as from the commands; they once failed wherever they were used."""
    names = {"tol", "scale", "storage"} | set(inspect.signature(path).parameters).intersection(
        (
            "cmin", "cmax", "bias", "beta_min_ratio", "alpha_min_ratio", "lambda_min_ratio", "coef0", "kernel",
            "smoothing",
        )
    )  # fmt: skip
    kernel = {"smoothing"} if path is screenpath.kernel_svm_path and value is None else set()  # the exact loss
    for name in names - kernel:
        with pytest.raises(UsageError, match=f"^`{name}` must .*, not "):
            path(X, Y, **{name: value})


@pytest.mark.parametrize("value", [1.5, "x", None, True, 0, [2], np.ones(2)])
@pytest.mark.parametrize("path", PATHS)
def test_counts_of_another_type(path, value):
    names = {"max_epochs"} | set(inspect.signature(path).parameters).intersection(("threads", "jobs", "degree"))
    kernel = {"smoothing"} if path is screenpath.kernel_svm_path and value is None else set()  # the exact loss
    for name in names - kernel:
        with pytest.raises(UsageError, match=f"^`{name}` must be a whole number of at least 1, not "):
            path(X, Y, **{name: value})
    if type(value) in (float, str):
        name = "references" if path is screenpath.sparse_svm_path else "chunk"
        if name in inspect.signature(path).parameters:
            with pytest.raises(UsageError, match=f"^`{name}` must be a whole number"):
                path(X, Y, **{name: value})


@pytest.mark.parametrize("value", [3, None, ["dvi"], b"gap", np.ones(2)])
@pytest.mark.parametrize("path", PATHS)
def test_rules_and_solvers_that_are_no_text(path, value):
    for name in ("rule", "solver"):
        with pytest.raises(UsageError, match=f"{name} '|`{name}` must be a text, not None"):
            path(X, Y, **{name: value})


def test_rows_and_labels_of_another_kind():
    """A text was an array of no dimension, a sparse array of one failed in scipy, dates were counted as days."""
    with pytest.raises(DataError, match="not 0\n.*read_data reads a file"):
        screenpath.svm_path("data.libsvm", Y)
    with pytest.raises(DataError, match="two dimensions .*, not 1"):
        screenpath.svm_path(sp.coo_array(X[0]), Y)
    dates = np.where(Y > 0, "2001-01-01", "2002-01-01").astype("datetime64[D]")
    for labels in (dates, Y + 0j):
        with pytest.raises(DataError, match="the labels are .*, neither numbers nor texts"):
            screenpath.svm_path(X, labels)
    with pytest.raises(DataError, match="the labels are a sparse matrix\n.*toarray"):
        screenpath.svm_path(X, sp.csr_matrix(Y[:, None]))
    with pytest.raises(DataError, match=r"neither all numbers nor all texts\n.*astype\(str\)"):
        screenpath.svm_path(X, np.where(Y > 0, b"yes", b"no"))
    with pytest.raises(DataError, match="there are no labels: y is None\n"):
        screenpath.svm_path(X, None)
    with pytest.raises(DataError, match="the data are texts, not numbers"):
        screenpath.svm_path(X.astype(str), Y)
    for path in (screenpath.lad_path, screenpath.quantile_path, screenpath.svr_path):
        with pytest.raises(DataError, match="the targets hold nan"):
            path(X, np.where(Y > 0.0, np.nan, Y))
    with pytest.raises(DataError, match="the data has no columns"):
        screenpath.run("svm", (X[:, :0], Y), out="out")


@pytest.mark.parametrize("step", ["last", 0.5, [1]])
def test_steps_of_another_kind(step):
    path = screenpath.svm_path(X, Y, grid=[0.1, 1.0])
    with pytest.raises(UsageError, match="a step is named by its place.*\n.*C=0.1"):
        path.predict(X, step)
    for value in ("x", None, [1.0, 2.0]):
        with pytest.raises(UsageError, match="the parameters of a step are numbers, not C="):
            path.predict(X, C=value)
    with pytest.raises(UsageError, match="there is no step with C=inf"):
        path.predict(X, C=np.inf)


def test_lists_and_weights_that_are_no_numbers():
    for grid in (["a"], [10**400]):
        for given in ({"betas": grid}, {"alphas": grid}):
            with pytest.raises(UsageError, match="the parameters .* are not all numbers"):
                screenpath.sparse_svm_path(X, Y, **given)
        with pytest.raises(UsageError, match="the parameters .* are not all numbers"):
            screenpath.svm_path(X, Y, grid=grid)
    for weights in ("abc", {"a": 1}, [10**400] * 4):
        with pytest.raises(UsageError, match="the penalty weights are not all numbers"):
            screenpath.l1_svm_path(X, Y, penalty_weights=weights)
    with pytest.raises(UsageError, match="the weights are not all numbers"):
        screenpath.svm_path(X, Y, sample_weight=[10**400] * 40)
    with pytest.raises(UsageError, match="no sample has the label None"):
        screenpath.svm_path(X, Y, class_weight={None: 1.0})
    with pytest.raises(DataError, match="the labels are neither all numbers nor all texts"):
        screenpath.svm_path(X, [10**400] * 40)
    for gamma in (None, [1.0], {}, 10**400, np.ones(2)):
        with pytest.raises(UsageError, match="`gamma` must be a positive number, NUMBER/d or scale"):
            screenpath.kernel_svm_path(X, Y, gamma=gamma)
    for dtype in ("foo", "1/2"):
        with pytest.raises(UsageError, match="`dtype` must be float64 or float32"):
            screenpath.kernel_svm_path(X, Y, dtype=dtype)
    with pytest.raises(UsageError, match="`max_memory` must be an amount of memory"):
        screenpath.kernel_svm_path(X, Y, max_memory=[1, 2])


@pytest.mark.parametrize("empty", [{"betas": [], "alphas": 2}, {"betas": 2, "alphas": []}])
def test_empty_lists_are_no_defaults(empty):
    with pytest.raises(ValueError, match="the list of parameters is empty"):
        SparseSVMClassifierCV(**empty).fit(X, Y)


def test_an_eps_path_is_for_a_single_path():
    """The estimator took its first point for the whole list."""
    grid = screenpath.EpsilonGrid(0.1, 1.0, 0.1)
    with pytest.raises(ValueError, match="grows with a single path"):
        SVMClassifierCV(grid=grid).fit(X, Y)
    assert screenpath.svm_path(X, Y, grid=grid, tol=1e-3).certified


def test_keywords_that_others_make_void_are_left_out():
    """Each has its default in the signature, so it cannot contradict: the shell names it where it is given."""
    for path, given, void in (
        (screenpath.svm_path, {"grid": [0.1]}, {"cmin": 2.0, "chunk_form": "s"}),
        (screenpath.kernel_svm_path, {"kernel": "linear", "grid": 2}, {"degree": 5, "gamma": 3.0}),
        (screenpath.l1_svm_path, {"grid": 3}, {"lambda_min_ratio": 0.5}),
        (screenpath.sparse_svm_path, {"betas": 2, "alphas": 2}, {"references": 3}),
    ):
        found, plain = path(X, Y, **given, **void), path(X, Y, **given)
        assert [step.primal for step in found] == [step.primal for step in plain]


def test_all_of_the_functions_and_nothing_else_is_documented():
    functions = (*PATHS, screenpath.quantile_path, screenpath.svr_path)
    for path in functions:
        text = inspect.getdoc(path)
        part = text.partition("Parameters\n----------\n")[2].partition("\n\nReturns")[0]
        entries = [line.partition(" : ")[0] for line in part.splitlines() if not line.startswith(" ")]
        assert entries == list(inspect.signature(path).parameters)
        assert "Returns\n-------\n" in text and "Raises\n------\n" in text


def test_a_step_at_zero_is_found():
    path = screenpath.sparse_svm_path(X, Y, betas=[0.1, 0.01], alphas=[0.1, 0.0])
    assert path.position(alpha=0, beta=0.01) == 3 and path.position(alpha=0.1, beta=0.1) == 0
    with pytest.raises(UsageError, match="there is no step with alpha=1e-09"):
        path.position(alpha=1e-9, beta=0.01)


def test_three_labels_have_remedies_that_python_functions_take(tmp_path):
    """They were told to use `positive`, which raised a TypeError."""
    three = np.arange(40) % 3
    for path in (screenpath.svm_path, screenpath.l1_svm_path, screenpath.kernel_svm_path):
        with pytest.raises(DataError, match="pass y == LABEL.*sparse_svm_path.*screenpath.sklearn") as found:
            path(X, three)
        assert "`positive" not in found.value.hint
        assert path(X, three == 1, grid=2).certified
    with pytest.raises(DataError, match="use lad_path, svr_path or quantile_path; for classes .*pass y == LABEL"):
        screenpath.svm_path(X, X[:, 0])
    with pytest.raises(DataError, match="`positive=LABEL`"):
        screenpath.run("svm", (X, three), out=tmp_path / "r", quiet=True)
    assert screenpath.run("svm", (X, three), out=tmp_path / "r", positive=1, grid=2, quiet=True).certified


@pytest.mark.parametrize("path", [screenpath.svm_path, screenpath.kernel_svm_path, screenpath.sparse_svm_path])
def test_weights_are_theirs_who_asked(path):
    grid = {"betas": [0.01], "alphas": [0.1]} if path is screenpath.sparse_svm_path else {"grid": [0.1]}
    found = path(X, Y, **grid)
    before = found.decision_function(X)
    weights = found.coef()
    weights *= 2.0
    assert np.array_equal(found.decision_function(X), before) and weights.any()


def test_dense_rows_that_are_mostly_zero_are_standardised():
    """A fold may be a little emptier than the whole."""
    rows = np.where(np.random.default_rng(0).random((40, 4)) < 0.2, 1.0, 0.0)
    assert screenpath.svm_path(rows, Y, grid=2, scale="standard").certified
    assert SVMClassifier(scale="standard").fit(rows, Y).coef_.shape == (1, 4)
    for sparse in (
        lambda: screenpath.svm_path(sp.csr_array(rows), Y, scale="standard"),
        lambda: screenpath.svm_path(rows, Y, scale="standard", storage="sparse"),
    ):
        with pytest.raises(ScreenpathError, match="would fill these sparse rows"):
            sparse()


def test_runs_on_arrays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as found:
        screenpath.run("svm", (X, np.arange(40) % 3), out="three", quiet=True)
    assert found.value.message.startswith("arrays: two labels are needed")
    kernel = screenpath.run("svm", (X, Y), kernel="rbf", grid=2, out="kernel", quiet=True)
    with pytest.raises(DataError, match="computed from arrays, and does not keep them") as found:
        screenpath.load_run("kernel").predict(X)
    assert "write_libsvm" in found.value.hint
    assert (screenpath.load_run("kernel", (X, Y)).predict(X) == kernel.predict(X)).all()
    with pytest.raises(UsageError, match="no picture of the kind 'foo'"):
        screenpath.plot_run("kernel", "foo")


def test_runs_on_arrays_read_them_again(tmp_path):
    run = screenpath.run("svm", (X, Y), c_list=[0.1, 1.0], out=tmp_path / "run", quiet=True)
    screenpath.write_libsvm(tmp_path / "file", X, Y)
    for again in (run, *(screenpath.load_run(run.folder, one) for one in ((X, Y), [X, Y], tmp_path / "file"))):
        assert np.array_equal(again.loo(C=1).values, run.loo(C=1).values)
        assert np.array_equal(again.duals(C=1).values, run.duals(C=1).values)
    with pytest.raises(DataError, match="arrays is not the training data"):
        screenpath.load_run(run.folder, (X + 1.0, Y)).loo(C=1)
    with pytest.raises(UsageError, match="the name of the file comes first"):
        screenpath.write_libsvm(X, Y, tmp_path / "file")
    with pytest.raises(UsageError, match="`training` must be the name of a file"):
        screenpath.load_run(run.folder, 3)


def test_labels_true_and_false_stay_so():
    X = np.array([[2.0, 1.0], [1.5, 2.0], [-1.0, -2.0], [-2.0, -0.5]])
    y = np.array([True, True, False, False])
    for labels in (y, y.astype(object)):
        for path in (
            screenpath.svm_path(X, labels, grid=[1.0], class_weight={True: 2.0}),
            screenpath.sparse_svm_path(X, labels, betas=2, alphas=2),
        ):
            assert path.labels == (False, True) and path.predict(X, step=-1).dtype == bool
    assert (screenpath.svm_path(X, y, grid=[1.0]).predict(X) == y).all()


def test_nearly_constant_columns_are_named():
    X, y = two_classes(30, 3)
    X[:, 1] = 1e9 + 1e-7 * np.arange(30)
    with pytest.warns(UserWarning, match="X: feature 2 is nearly constant: `scale=standard` enlarges"):
        screenpath.svm_path(X, y, grid=2, scale="standard")
    with pytest.warns(UserWarning, match="feature 2 is nearly constant"):
        SVMClassifier(scale="standard").fit(X, y)
