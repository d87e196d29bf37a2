"""The study of Zhao 2014: seven configurations on one grid."""


import pytest

import screenpath
from screenpath.catalogue.option import completed
from screenpath.engine.saved import Silent
from screenpath.engine.studies import DEFAULT, FEATURES_MEASURED, STUDY, study, study_options
from screenpath.errors import UsageError
from tests.conftest import two_classes

COLUMNS = ("configuration", *FEATURES_MEASURED, "speedup")
CONFIGURATIONS = (*STUDY, DEFAULT)


def test_all_configurations_certify_and_screening_leaves_fewer_over_hits():
    data, said = two_classes(n=50, d=150, seed=1), []
    console = Silent()
    console.say = said.append
    given = {"configurations": ",".join(CONFIGURATIONS), "grid": 6, "repeats": 2}
    options = completed(study_options("l1svm"), given, "a comparison") | {"data": data}
    found, good = study("l1svm", options, console)
    assert good and said[: len(CONFIGURATIONS) + 1][-2:] == ["run 1/2: default", "run 2/2: org"]  # in alternation
    rows = {row["configuration"]: row for row in found}
    assert all(tuple(row) == COLUMNS for row in rows.values())
    assert [row["certified"] for row in rows.values()] == [6] * len(CONFIGURATIONS)
    assert rows["org"]["speedup"] == 1.0
    assert rows["scr"]["over_hits"] < rows["org"]["over_hits"] == rows["warm"]["over_hits"]
    assert rows["default"]["epochs"] < rows["org"]["epochs"]
    assert rows["org"]["epochs"] != rows["warm"]["epochs"]  # the cold start is one
    steps, _ = study("l1svm", {**options, "repeats": 1, "steps": True}, console)
    assert len(steps) == 6 * len(CONFIGURATIONS)
    for row in steps:
        assert row["over_hits"] + row["active"] <= 150


def test_no_speedup_is_claimed_for_unfinished_runs():
    data = two_classes(n=50, d=20, seed=2)
    rows = screenpath.compare("l1svm", data, configurations="org,default", grid=4, repeats=1, max_epochs=2)
    assert rows[0]["certified"] < 4
    assert [row["speedup"] for row in rows] == [None, None]


def test_unknown_configuration():
    with pytest.raises(UsageError, match="warm\\+scr"):
        screenpath.compare("l1svm", two_classes(n=20, d=3), configurations="fast", grid=2)
