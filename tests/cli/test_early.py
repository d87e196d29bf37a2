"""What no data could mend is said before they are read, and before anything is compiled for them."""

import pytest

from screenpath.errors import DataError
from screenpath.inputs import load

READ = "the data are read"  # what is right gets there
CASES = [
    ("svm --c-list 1,1", "appears twice in the list"), ("svm --cmin 10 --cmax 1", "swap --cmin and --cmax"),
    ("svm --cmin 1 --cmax 1", "give two ends apart"), ("svm --c 1 --grid 5", "--c is a single problem"),
    ("svm --eps-path 0.1 --grid 5", "finds its own grid points"), ("svm --eps-path 0.1 --tol 0.5", "use --tol 0.01"),
    ("svm --reference 1", "add --c VALUE"), ("svm --reference 1 --c 1", "--reference and --c are the same problem"),
    ("svm --kernel rbf --gamma x", "NUMBER/d or scale"), ("svm --kernel rbf --chunk 3", "leave out --chunk"),
    ("svm --class-weight 1:5", "--class-weight '1:5' is not LABEL=WEIGHT"), ("svm --rule nonsense", "unknown rule"),
    ("quantile --tau-list 0.5,2 --c 1", "must lie between 0 and 1"), ("svm --solver nonsense", "unknown solver"),
    ("sparse-svm --alpha 0 --beta 0", "there is no penalty"), ("sparse-svm --alpha 1,1", "appears twice"),
    ("sparse-svm --beta 1 --betas 3", "leave out --betas"), ("sparse-svm --eps-path 2", "use --eps-path 0.01"),
    ("l1svm --lambda-list 1 --grid 3", "the whole grid"), ("l1svm --lambda-list 1,1", "appears twice"),
    ("l1svm --lambda-min-ratio 0.1", "add --log"), ("huber --references 2", "add --alpha VALUE"),
    ("cv svm --gammas 3", "add --kernel rbf"), ("cv svm --kernel rbf --gammas 1,0", "must be a positive number"),
    ("cv svm --score mae", "use one of accuracy"), ("cv lad --score mae,auc", "use one of mae"),
    ("cv svm --cmin 3 --cmax 1", "swap"), ("compare-rules svm --rules dvi --c-list 1,1", "appears twice"),
    ("svm --test nofile", "nofile: no such file\n  check the path that --test has"),
    ("svm --weights nofile", "--weights"), ("l1svm --penalty-weights nofile", "--penalty-weights"),
    ("sparse-svm --signs nofile", "--signs"), ("sparse-svm --groups nofile", "--groups"),
    ("cv svm --fold-file nofile", "--fold-file"), ("svm --kernel rbf --gamma scale", READ), ("l1svm --log", READ),
    ("cv svm --kernel rbf --gammas 3", READ), ("cv svm --score auc", READ), ("svm --class-weight 1=5", READ),
    ("svm --part 3/200", "more parts than grid points: 100"), ("svm --grid 2 --part 1/3", "grid points: 2"),
    ("svm --c-list 1,2 --part 1/3", "use --part 1/2"), ("svm --grid 2 --part 2/2", READ),
    ("l1svm --grid 2 --part 1/3", "more parts than grid points: 2"), ("l1svm --part 1/21", "grid points: 20"),
    ("sparse-svm --part 1/11", "values of beta: 10"), ("sparse-svm --beta 1,2 --part 1/3", "values of beta: 2"),
    ("cv svm --part 1/6", "more parts than folds: 5"), ("cv svm --folds 2 --repeats 3 --part 6/6", READ),
    ("cv svm --kernel rbf --gammas 3,3", "needs different positive numbers"),
    ("cv svm --kernel rbf --gammas .3,1,0.30", "needs different positive numbers"),
    ("cv svm --kernel rbf --gammas 3,3/d,scale", READ),
    ("sparse-svm --betas 3 --part 1/4", "values of beta: 3"),
    ("svm --scheduler 127.0.0.1:1", "a cluster reads shards, not text"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "said"), CASES, ids=[words for words, _ in CASES])
def test_before_data_are_read(words, said, call, data, monkeypatch):
    def reading(options):
        raise DataError(READ)

    monkeypatch.setattr(load, "read_training", reading)
    command, _, options = words.partition(" --")
    done = call(*command.split(), data, *f"--{options}".split())
    assert done.code == (1 if "nofile" in words or said == READ else 2) and said in done.err
