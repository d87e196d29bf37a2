"""Run folders whose content was changed on purpose, hashes and all."""

import hashlib
import json

from screenpath.store import record as records


def seal(folder, record=None) -> None:
    """Write run.json, or another record, with the hashes of what the folder has: formed here, not by the package."""
    record = json.loads((folder / records.RUN).read_text()) if record is None else dict(record)
    for name in record["files"]:
        data = (folder / name).read_bytes()
        record["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    record.pop("sha256", None)
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    record["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / records.RUN).write_text(json.dumps(record) + "\n")


def reseal(folder, change=None) -> None:
    """Write run.json anew as the package does, with the hashes of the files; ``change`` alters the record before."""
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
