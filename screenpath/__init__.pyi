from screenpath.api.kernel import KernelPathResult as KernelPathResult
from screenpath.api.kernel import kernel_svm_path as kernel_svm_path
from screenpath.api.l1svm import l1_svm_path as l1_svm_path
from screenpath.api.losses import lad_path as lad_path
from screenpath.api.losses import quantile_path as quantile_path
from screenpath.api.losses import svm_path as svm_path
from screenpath.api.losses import svr_path as svr_path
from screenpath.api.sparse import SparsePathResult as SparsePathResult
from screenpath.api.sparse import sparse_svm_path as sparse_svm_path
from screenpath.data.libsvm import read_libsvm as read_libsvm
from screenpath.models.grid import EpsilonGrid as EpsilonGrid
from screenpath.runs.result import PathResult as PathResult
from screenpath.verify import verify_certificate as verify_certificate

__version__: str
