"""Where the pages' data sets come from: what each file holds, its sha256, how to make it, and its licence.

The sha256 is that of the LIBSVM text, not of its compressed file. ``made:NAME`` is a set of ``screenpath generate``.
"""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import NamedTuple


class Origin(NamedTuple):
    """Of one file of the data folder."""

    sha256: str
    recipe: str
    licence: str


UCI, LIBSVM = "UCI Machine Learning Repository", "LIBSVM data page"
TF_IDF = "A. Cardoso-Cachopo's collection; tf-idf, rows of norm 1, classes numbered"
ORIGINS = {
    "binary/breast_cancer.libsvm.gz": Origin(
        "64fe97d5470fba3b8f9590958712b900608c59b0f24c5c2de2cd3b1938a0c0a7",
        f"{UCI}, Breast Cancer Wisconsin (Diagnostic), as in scikit-learn; labels -1, +1",
        "CC BY 4.0",
    ),
    "binary/chowdary.libsvm.gz": Origin(
        "2703b0284000b15c0d3992cbcc90dc3509c4978ed415446e2a341146afae5005",
        "microarray of Chowdary et al. 2006, 104 x 22,283, labels -1, +1",
        "data of the original publication",
    ),
    "binary/covtype20k.libsvm.gz": Origin(
        "e87b92667d1c7a1a4d38c5a490d30e620a6945fd680dc3134fd891a5d355dfad",
        f"{UCI}, Covertype: first 20,000 rows, two groups of classes",
        "CC BY 4.0",
    ),
    "binary/covtype20k_6v7.libsvm.gz": Origin(
        "d1fa197ac2ba3b74f6026600c64a8ad70dca47ad8a13f9d3452a531a0fdb1b21",
        f"{UCI}, Covertype: classes 6 and 7 of its first 20,000 rows",
        "CC BY 4.0",
    ),
    "binary/digit1.libsvm.gz": Origin(
        "d3facf72315957c491e20ee9b6668a83d4a00c82fd009190189e61a5b144b297",
        "Digit1 of the benchmark of Chapelle, Schoelkopf, Zien 2006",
        "none stated",
    ),
    "binary/ijcnn1.libsvm.gz": Origin(
        "212108597a05b2c68817acbbd28c58d14deda43a7864c3701acb6164a794e851",
        f"{LIBSVM}, ijcnn1, its 49,990 training rows",
        "none stated",
    ),
    "binary/magic04.libsvm.gz": Origin(
        "6db81d682954a6b9231a51a51e026618ff530bbfa2ae9788b21959ccb860cd4e",
        f"{UCI}, MAGIC Gamma Telescope, unscaled",
        "CC BY 4.0",
    ),
    "binary/mushrooms.libsvm.gz": Origin(
        "7ad58e54036a6cb61319872a6ac951ff832bbe271f2f98cbfa4942f2138a522c",
        f"{UCI}, Mushroom, categories as indicators, labels -1, +1",
        "CC BY 4.0",
    ),
    "binary/pcmac.libsvm.gz": Origin(
        "f7de9df321446c5156729b1077b94b8072c43f2e1ab31db5367392ab54c90e25",
        "PCMAC of the feature selection repository of Arizona State University: word counts",
        "none stated",
    ),
    "binary/rcv1sub.binary.libsvm.gz": Origin(
        "21ce5b8d7fe325569d9cc3f328cb9556e033dbcd5ccfc9e2489d797f02c43a66",
        "a part of RCV1 (Lewis et al. 2004) with the 47,236 features of rcv1.binary",
        "vectors for research",
    ),
    "binary/w8a.libsvm.gz": Origin(
        "05af7655871a35d5bc89c755791b5338a9969cb604c9df045c811c5e5a45426e", f"{LIBSVM}, w8a", "none stated"
    ),
    "binary/winequality12.libsvm.gz": Origin(
        "d74355d22e3f93134e3d05f40a153d71d3587a114c410b5c211faf43d4eb9f22",
        f"{UCI}, Wine Quality: red and white, label quality >= 6, the colour as twelfth column",
        "CC BY 4.0",
    ),
    "multiclass/dna.libsvm.gz": Origin(
        "3a3770a061d739deb994f00a748b12d267422ff1f3af98068922e9177de107a9", f"{LIBSVM}, dna", "CC BY 4.0 (UCI)"
    ),
    "multiclass/news20.libsvm.gz": Origin(
        "61d582e3ab0066f9382d2e563f20ed9394b25ff552be11f47138fbe44e8fd0c7",
        f"20 Newsgroups of {TF_IDF}",
        "none stated",
    ),
    "multiclass/reuters_r8.libsvm.gz": Origin(
        "d4e8494b898a9e42fd436458a4f1fe6c6c910ad987a5f722761e4648b0151e06", f"Reuters R8 of {TF_IDF}", "none stated"
    ),
    "multiclass/satimage.libsvm.gz": Origin(
        "812d24f88e488adc23b46f1fba4cc08a0c1624a4c86a689410d524bfe3a7900f",
        f"{UCI}, Statlog (Landsat Satellite), unscaled",
        "CC BY 4.0",
    ),
    "multiclass/shuttle.libsvm.gz": Origin(
        "13b03439795f7682c54ffab57b467cf0ff1c065ce0f939ed700f6facd5fbb08a",
        f"{UCI}, Statlog (Shuttle), unscaled",
        "CC BY 4.0",
    ),
    "multiclass/usps.libsvm.gz": Origin(
        "1cce0b35d82c42b70b94d9270b7c122cd1c20cce22a5b2d1d309b36ffd10de8d", f"{LIBSVM}, usps", "none stated"
    ),
    "regression/cadata.libsvm.gz": Origin(
        "8eb18fa5ed432628984a92986ac15036b682e322ab6daf6b34ae599009bd417b",
        "houses of StatLib (Pace and Barry 1997), as PMLB has them",
        "none stated",
    ),
    "regression/cpusmall.libsvm.gz": Origin(
        "e9aef3593374351ce9fed34ad137cb0471bd9ead54ced254744dc38465ee114c",
        "comp-activ of DELVE (Rasmussen et al.), the small form, as PMLB has it",
        "none stated",
    ),
    "regression/magic04.libsvm.gz": Origin(
        "6db81d682954a6b9231a51a51e026618ff530bbfa2ae9788b21959ccb860cd4e", "as binary/magic04", "CC BY 4.0"
    ),
}


def content(file: Path) -> bytes:
    """Return the text of a LIBSVM file."""
    return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()


def origin(place: str, file: Path, how: str) -> tuple[str, str, str]:
    """Return the first half of the sha256 of a set, where it comes from, and its licence, for a page's table."""
    digest = hashlib.sha256(content(file)).hexdigest()
    short, known = digest[:32], ORIGINS.get(place)
    if place.startswith("made:"):
        return short, f"`screenpath generate {how}`", "generated"
    if known is None or known.sha256 != digest:
        return short, "**not the file that this project's pages are made of**", "unknown"
    return short, known.recipe + how, known.licence


def missing(places, folder: Path) -> list[str]:
    """Return a line for each place that the data folder lacks: its name, and how to make it."""
    absent = [place for place in places if not place.startswith("made:") and not (folder / place).is_file()]
    unknown = Origin("", "no recipe is known", "")
    return [f"{folder / place} is not there: {ORIGINS.get(place, unknown).recipe}" for place in absent]
