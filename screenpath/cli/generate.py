"""``screenpath generate``: the papers' synthetic data sets as LIBSVM text."""

from __future__ import annotations

import click

from screenpath.cli.help import helped
from screenpath.cli.options import force_option


@helped(
    "generate",
    "screenpath generate wang-toy1 --seed 0 -o toy1.libsvm",
    "screenpath generate hong-syn1 --n 1000 --p 5000 -o syn1.libsvm.gz",
)
@click.argument("name")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of the random numbers.")
@click.option("--n", type=click.IntRange(min=1), help="Number of samples.  [default: the paper's]")
@click.option("--p", type=click.IntRange(min=1), help="Number of features.  [default: the paper's]")
@click.option(
    "-o", "--out", metavar="FILE", default="-", help="File (.gz, .bz2, .xz are compressed).  [default: stdout]"
)
@force_option
def command(name, seed, n, p, out, force):
    """Write the synthetic data set NAME of the papers as LIBSVM text. The same seed gives the same bytes.

    \b
    wang-toy1, wang-toy2, wang-toy3   two Gaussians in the plane (Wang et al. 2014)
    ogawa-toy                         two Gaussians in the plane (Ogawa et al. 2013)
    ogawa2014-toy                     two Gaussians in the plane (Ogawa et al. 2014)
    hong-syn1, hong-syn2, hong-syn3   sparse, two classes (Hong et al. 2019)
    hong-syn-multi1, hong-syn-multi2, hong-syn-multi3
                                      sparse, five classes (Hong et al. 2019)
    big                               two classes, 20 million rows x 50, written as it is made: 10 GB of text
    """
    from screenpath.data.files.generate import BIG, NAMES, big_text, checked_name
    from screenpath.data.files.write_libsvm import compressed
    from screenpath.store.outputs import Output

    checked_name(name, (*NAMES, BIG))
    output = Output(out, force)
    blocks = big_text(seed, n, p) if name == BIG else small_text(name, seed, n, p)
    with output.open(parents=True) as file, compressed(file, output.path.suffix) as text:
        for block in blocks:
            text.write(block)


def small_text(name, seed, n, p):
    """Return an iterator over the lines of a set that is made in memory."""
    from screenpath.data.files.generate import generate
    from screenpath.data.files.write_libsvm import libsvm_lines

    X, y = generate(name, seed, n=n, p=p)
    return (line.encode() for line in libsvm_lines(X, y))
