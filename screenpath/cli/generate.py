"""``screenpath generate``: the papers' synthetic data sets as LIBSVM text."""

from __future__ import annotations

import sys

import click


@click.command("generate")
@click.argument("name")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of the random numbers.")
@click.option("--n", type=click.IntRange(min=1), help="Number of samples.  [default: the paper's]")
@click.option("--p", type=click.IntRange(min=1), help="Number of features.  [default: the paper's]")
@click.option(
    "-o", "--out", metavar="FILE", default="-", help="File (.gz, .bz2, .xz are compressed).  [default: stdout]"
)
def command(name, seed, n, p, out):
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
    from screenpath.generate_big import NAME, big_text

    if name == NAME:
        _write_blocks(big_text(seed, n, p), out)
        return
    from screenpath.generate import generate
    from screenpath.write.libsvm import libsvm_lines, write_libsvm

    X, y = generate(name, seed, n=n, p=p)
    if out == "-":
        sys.stdout.writelines(libsvm_lines(X, y))
        sys.stdout.flush()
    else:
        write_libsvm(out, X, y)


def _write_blocks(blocks, out: str) -> None:
    """Write blocks of text to stdout or to a file, compressed as its name says."""
    from pathlib import Path

    from screenpath.write.libsvm import open_text

    if out == "-":
        for block in blocks:
            sys.stdout.buffer.write(block)
        sys.stdout.flush()
        return
    with open_text(Path(out)) as file:
        for block in blocks:
            file.write(block)
