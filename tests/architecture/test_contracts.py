"""Implementations are what their contract says, down to the arguments of their methods."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.catalogue.losses import LOSSES
from screenpath.data.files.write_libsvm import write_libsvm
from screenpath.data.shards.convert import convert
from screenpath.data.shards.shards import ShardFolder
from screenpath.numbers.rounding import Proven
from screenpath.problem.base import Family, PathModel, Region, RegionModel, Resumable
from screenpath.problem.l1svm import L1SVM
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.regions.geometry import Ball, Dome, Lens, Point
from screenpath.rows.base import Counted, FeatureColumns, Rows, TwoViews, WalkedRows
from screenpath.rows.cluster import ClusterRows
from screenpath.rows.column_shards import ColumnShards, ShardColumns
from screenpath.rows.columns import Columns
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.rows.memory import MemoryRows
from screenpath.rows.shards import ShardRows
from screenpath.rows.views import ShardViews, Views
from screenpath.screen import STATIC, parse_kernel_rule, parse_rule
from screenpath.screen.base import PathScreening, StaticRule
from screenpath.screen.l1svm import parse_feature_rule
from screenpath.screen.pathwise import GUESSED
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve import make_solver
from screenpath.solve.auto import Auto
from screenpath.solve.base import Solver
from screenpath.solve.l1cd import FeatureDescent
from screenpath.solve.newton import Newton
from screenpath.solve.smo import make_kernel_solver
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.walk.one_vs_rest import OneVsRest
from tests.kernel_problems import kernel_svm_model
from tests.sparse_problems import ACC_SDCA, SDCA

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
SIGNS = np.where(np.arange(12) % 2, 1.0, -1.0)
KERNEL = KernelFunction("rbf", gamma=0.5)


def members(contract):
    """Return the names that a contract speaks of, its own and those of the contracts it extends."""
    bases = [base for base in contract.__mro__ if getattr(base, "_is_protocol", False)]
    found = {name for base in bases for name in (*vars(base), *inspect.get_annotations(base))}
    return sorted(name for name in found if not name.startswith("_"))


def meets(found, contract, *, names=True):
    """Assert that an object has all that a contract speaks of, and that its methods take the contract's arguments.

    Parameters
    ----------
    found : object
    contract : Protocol
    names : bool
        Whether the arguments have the contract's names; a grid point has the name that the model's literature gives it.
    """
    assert isinstance(found, contract)
    for name in members(contract):
        expected = getattr(contract, name, None)
        assert hasattr(found, name), name
        if not inspect.isfunction(expected):
            continue
        asked = list(inspect.signature(expected).parameters.values())[1:]
        offered = inspect.signature(getattr(found, name))
        if names:
            known = list(offered.parameters.values())
            assert [(p.name, p.kind) for p in known] == [(p.name, p.kind) for p in asked], name
        needed = [p for p in asked if p.default is inspect.Parameter.empty]
        for given in (needed, asked):  # with and without what may be left out
            named = {p.name: 0 for p in given if p.kind == p.KEYWORD_ONLY}
            offered.bind(*(0 for p in given if p.kind != p.KEYWORD_ONLY), **named)


def test_the_check_finds_what_is_missing():
    class Other:
        name, needs_far_end, compiled = "other", False, None

        def region(self, model, reference):
            return None

    with pytest.raises(AssertionError):
        meets(Other(), StaticRule)
    with pytest.raises(TypeError):
        meets(Other(), StaticRule, names=False)
    assert {"n", "touched", "moved", "norms", "margins", "lent", "pool"} <= set(members(WalkedRows))
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (Rows,), {})()


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [X, X.astype(np.float32), sp.csr_array(X)], ids=["dense", "float32", "sparse"])
def test_rows_in_memory(data):
    rows = MemoryRows(data)
    meets(rows, WalkedRows)
    assert rows.moved is None and rows.compiled == (data.dtype == np.float64)


def test_rows_in_shards(tmp_path):
    write_libsvm(tmp_path / "text", sp.csr_array(X), SIGNS)
    convert([tmp_path / "text"], tmp_path / "shards")
    rows = ShardRows(ShardFolder(tmp_path / "shards"))
    meets(rows, Rows)
    assert not rows.compiled and rows.stored is None and rows.moved is None


def test_columns_in_shards(tmp_path):
    for data in (X, np.where(X > 1.0, X, 0.0)):
        write_libsvm(tmp_path / "text", sp.csr_array(data), SIGNS)
        folder = convert([tmp_path / "text"], tmp_path / "columns", by="columns", force=True)
        columns = ShardColumns(ColumnShards(folder), SIGNS)
        meets(columns, FeatureColumns)
        assert columns.moved is None
        views = ShardViews(ColumnShards(folder))
        meets(views, TwoViews)
        meets(views.meter, Counted)


def test_rows_on_a_cluster_are_rows_in_shards_that_count_what_they_send():
    assert issubclass(ClusterRows, ShardRows) and "self.moved" in inspect.getsource(ClusterRows.__init__)
    assert not {name for name in vars(ClusterRows) if not name.startswith("_")} - {"check", "close"}


def test_rows_of_other_models():
    meets(GramRows(X, KERNEL, SIGNS), Counted)
    for data in (X, sp.csr_array(X)):
        meets(Columns(data, SIGNS), FeatureColumns)
        views = Views(data)
        meets(views, TwoViews)
        meets(views.meter, Counted)


# -- models ------------------------------------------------------------------------------------------------------------


def sparse_model():
    return SparseModel(Views(X), SIGNS.astype(np.int64), 1, 0.01, 0.5)


MODELS = {
    **{name: lambda loss=loss: loss.model(MemoryRows(X), SIGNS) for name, loss in LOSSES.items()},
    "kernel": lambda: kernel_svm_model(GramRows(X, KERNEL, SIGNS)), "l1svm": lambda: L1SVM(Columns(X, SIGNS)),
    "sparse": sparse_model,
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    model = MODELS[name]()
    meets(model, PathModel, names=False)
    if name != "sparse":  # a row of a grid is resumed by the grid
        meets(model, Resumable, names=False)
    if name in LOSSES or name == "kernel":
        meets(model, RegionModel, names=False)
    assert model.compiled == (name in LOSSES and name != "svr") and model.parts == ()
    if model.compiled:
        assert isinstance(model.rows, Rows)
    certificate, nothing = model.start(0.1), model.nothing_screened()
    assert model.bound(certificate, 0.1) == (model, certificate, 0.1)
    assert isinstance(certificate, Proven)
    assert len(certificate.at) == len(model.parameters(0.1)) and np.all(np.isfinite(certificate.at))
    assert nothing.status.dtype == np.int8 and not nothing.status.any()


FAMILIES = {"grid": (lambda: SparseGrid(sparse_model()), (0.1, 0.01))}


@pytest.mark.parametrize("name", FAMILIES)
def test_families(name):
    make, point = FAMILIES[name]
    family = make()
    meets(family, Family, names=False)
    reference = family.start(point)
    model, bound, parameter = family.bound(reference, point)
    meets(model, PathModel, names=False)
    assert bound is reference and model.parameters(parameter) == family.parameters(point)
    assert len(reference.at) == len(point) and model.certify(parameter, None, reference.theta, reference).gap >= 0.0


def test_a_model_of_several_classes():
    model = OneVsRest(LOSSES["svm"].model, MemoryRows(X), np.arange(12) % 3)
    meets(model, Resumable, names=False)
    assert len(model.parts) == 3
    for part in model.parts:
        meets(part, PathModel, names=False)


# -- rules -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STATIC)
def test_static_rules(name):
    rule = STATIC[name]()
    assert isinstance(rule, StaticRule) and isinstance(rule.name, str)
    asked = ["model", "reference", "C", *(["far"] if rule.needs_far_end else [])]
    assert list(inspect.signature(rule.region).parameters) == asked


def test_regions():
    ball = Ball(Point(np.zeros(2), np.zeros(3), 0.0), 1.0)
    for region in (ball, Dome(ball.center, 1.0, Point(np.eye(2)[0], np.zeros(3), 1.0), 0.5), Lens(ball, ball)):
        meets(region, Region)


SCREENINGS = {
    **{rule: parse_rule for rule in ("none", "gap", *GUESSED, *STATIC, *(f"{name}+gap" for name in STATIC))},
    "chunks": lambda _: parse_rule("essnsv", chunk=2), "free chunks": lambda _: parse_rule("essnsv", chunk=2),
    "kernel": lambda _: parse_kernel_rule("it+gap"), "l1svm": lambda _: parse_feature_rule("vi+gap"),
    "sparse": lambda _: parse_sparse_rule("sifs+gap"),
}  # fmt: skip


@pytest.mark.parametrize("name", SCREENINGS)
def test_screenings(name):
    screening = SCREENINGS[name](name)
    meets(screening, PathScreening)
    assert isinstance(screening.name, str) and isinstance(screening.dynamic, bool)
    assert screening.needs_far_end == ("ssnsv" in name or "chunks" in name)
    assert screening.needs_known_grid == ("chunks" in name)
    assert set(screening.state()) == ({"left", "floor", "status"} if "chunks" in name else set())


# -- solvers -----------------------------------------------------------------------------------------------------------

SOLVERS = [
    *(make_solver(name, 0) for name in ("auto", "cd", "newton")),
    *(make_kernel_solver(name) for name in ("newton", "smo")),
    *(make_sparse_solver(name, 0) for name in ("newton", SDCA, ACC_SDCA)), FeatureDescent(),
]  # fmt: skip


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: f"{type(solver).__name__}-{solver.name}")
def test_solvers(solver):
    meets(solver, Solver)
    assert isinstance(solver.name, str)
    used = solver.compiled(MemoryRows(X))
    assert isinstance(used, Newton) if isinstance(solver, Newton | Auto) else used is None
