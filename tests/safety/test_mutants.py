"""What ``mutants.py`` leaves out is there, and so are the tests that it runs."""

from tests.safety.mutants import FURTHER, NEAREST, ROOT, SOLVING, mutants, stale


def test_what_is_listed_as_harmless_is_a_change_that_is_tried():
    """Else the search ends before it begins, and a reason may stand beside code that it no longer is about."""
    assert stale(list(NEAREST)) == []


def test_modules_functions_and_tests_are_there():
    assert set(NEAREST) > FURTHER
    for module, words in NEAREST.items():
        assert (ROOT / module).is_file()
        assert all((ROOT / word.partition("::")[0]).is_file() for word in words if word.startswith("tests/"))
    for module, function in SOLVING:
        assert f"def {function.rpartition('.')[2]}(" in (ROOT / module).read_text()


def test_a_change_is_the_one_that_it_is_said_to_be():
    for mutant in mutants("screenpath/numbers/rounding.py"):
        assert mutant.text.count(mutant.after) > mutant.source.count(mutant.after)
