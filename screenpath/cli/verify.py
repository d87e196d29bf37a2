"""``screenpath verify``: check the certificate of a run."""

from __future__ import annotations

import click

from screenpath.cli.codes import DONE, ERROR, UNCERTIFIED
from screenpath.cli.help import helped

SHOWN = 20  # faults that are named


@helped("verify", "screenpath verify runs/svm-data", "screenpath verify runs/svm-data data.libsvm")
@click.argument("run", type=click.Path())
@click.argument("data", required=False, type=click.Path())
def command(run, data):
    """Check the certificate of the run folder RUN against its data.

    The checker reads DATA (LIBSVM text, CSV or Parquet; by default the file of the run) in two passes and forms every
    number again, with none of the code that computed the run and with all rounding counted against the claims: gap and
    primal of every step, and that the rows claimed to be fixed in the optimum are. The run was computed with
    --certificate.

    What else the run folder says (options, labels, weights, scaling, step table, totals, coefficients) has to agree
    with certificate and data. What cannot be compared, such as times, is named as not covered.

    The exit code is 0 if every claim holds, 1 if one does not, and 3 if all hold but some steps claim nothing since
    the run itself does not call them certified.
    """
    from screenpath.verify import verify_certificate
    from screenpath.verify.run import not_covered

    found = verify_certificate(run, data)
    click.echo(str(found))
    for line in not_covered(found.uncovered):
        click.echo(line)
    for step, reason in found.faults[:SHOWN]:
        click.echo(reason if step is None else f"step {step}, {reason}", err=True)
    if len(found.faults) > SHOWN:
        click.echo(f"... and {len(found.faults) - SHOWN} more", err=True)
    return ERROR if found.faults else UNCERTIFIED if found.unclaimed else DONE
