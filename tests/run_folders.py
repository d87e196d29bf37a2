"""Run folders whose content was changed on purpose, hashes and all."""

import json

from screenpath.store import record as records


def reseal(folder, change=None) -> None:
    """Write run.json anew, with the hashes that the files of the folder have now.

    Parameters
    ----------
    folder : Path
    change : callable, optional
        Changes the record in place before it is sealed.
    """
    file = folder / records.RUN
    record = json.loads(file.read_text())
    record.pop("sha256", None)
    there = [name for name in records.OUTPUTS if (folder / name).is_file()]
    record["files"] = {name: records.file_entry(folder / name) for name in there}
    if change is not None:
        change(record)
    file.write_text(json.dumps(records.sealed(record)))


def unsealed(folder) -> None:
    """Make a run folder what version 0.1.0 would have written."""
    file = folder / records.RUN
    record = json.loads(file.read_text())
    for name in ("sha256", "files"):
        record.pop(name, None)
    file.write_text(json.dumps({**record, "schema_version": records.UNSEALED}))
