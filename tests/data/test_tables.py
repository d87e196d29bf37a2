import csv
import io
import json
import math

import numpy as np

from screenpath.data.words.tables import CsvTable, JsonLines, JsonTable, dump_json, readable_json

ROW = {"step": 0, "C": 0.1, "gap": math.inf, "n": np.int64(3), "name": 'a "quoted", name', "x": np.float64(1e-300)}
COLUMNS = ("step", "C", "gap", "n", "name", "x", "absent")


def text(table, rows=(ROW, ROW)):
    return table.opening() + "".join(table.record(r, k == 0) for k, r in enumerate(rows)) + table.closing()


def test_csv():
    rows = list(csv.DictReader(io.StringIO(text(CsvTable(COLUMNS)))))
    assert rows[1] == {
        "step": "0", "C": "0.1", "gap": "", "n": "3", "name": 'a "quoted", name', "x": "1e-300", "absent": "",
    }  # fmt: skip


def test_json_has_null_for_what_is_not_a_number():
    document = json.loads(text(JsonTable(COLUMNS)))
    assert document["schema_version"] == 1
    assert document["steps"][0] == {**ROW, "gap": None, "n": 3, "x": 1e-300, "absent": None}
    assert json.loads(text(JsonTable(COLUMNS), ())) == {"schema_version": 1, "steps": []}
    lines = text(JsonLines(COLUMNS)).splitlines()
    assert [json.loads(line) for line in lines] == document["steps"]


def test_floats_keep_all_digits():
    values = np.random.default_rng(0).normal(size=50)
    assert json.loads(dump_json({"v": values}))["v"] == values.tolist()


def test_readable_json_is_the_same_document():
    record = {"a": {"b": [1.0, math.nan], "c": {"d": 1}}, "e": {}, "f": None}
    written = readable_json(record)
    assert json.loads(written) == {"a": {"b": [1.0, None], "c": {"d": 1}}, "e": {}, "f": None}
    assert len(written.splitlines()) == 8
