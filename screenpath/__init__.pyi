from screenpath.api.kernel import KernelPathResult as KernelPathResult
from screenpath.api.kernel import kernel_svm_path as kernel_svm_path
from screenpath.api.l1svm import l1_svm_path as l1_svm_path
from screenpath.api.losses import lad_path as lad_path
from screenpath.api.losses import quantile_path as quantile_path
from screenpath.api.losses import svm_path as svm_path
from screenpath.api.losses import svr_path as svr_path
from screenpath.api.runs import compare as compare
from screenpath.api.runs import convert as convert
from screenpath.api.runs import cross_validate as cross_validate
from screenpath.api.runs import export_run as export_run
from screenpath.api.runs import options_of as options_of
from screenpath.api.runs import plot_run as plot_run
from screenpath.api.runs import report_run as report_run
from screenpath.api.runs import run as run
from screenpath.api.sparse import SparsePathResult as SparsePathResult
from screenpath.api.sparse import sparse_svm_path as sparse_svm_path
from screenpath.data.generate import generate as generate
from screenpath.data.inspect import inspect as inspect
from screenpath.data.libsvm import read_libsvm as read_libsvm
from screenpath.data.write_libsvm import write_libsvm as write_libsvm
from screenpath.models.grid import EpsilonGrid as EpsilonGrid
from screenpath.runs.result import PathResult as PathResult
from screenpath.runs.stored import StoredPath as StoredPath
from screenpath.runs.stored import load_run as load_run
from screenpath.verify import verify_certificate as verify_certificate

__version__: str
