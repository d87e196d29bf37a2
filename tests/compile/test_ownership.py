"""Compiled kernels are read where nobody but this user and root can put them, all parents included."""

import os
import pickle
import warnings
from types import SimpleNamespace

import pytest

from screenpath.compile import cache, sharing

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files here")
SOMEBODY = 54321


@pytest.fixture
def base(tmp_path):
    """Return a folder of ours, and one in one in it."""
    folder = tmp_path.resolve() / "a" / "b"
    folder.mkdir(parents=True, mode=0o755)
    for one in (folder.parent, folder):
        one.chmod(0o755)
    assert sharing.changeable(folder) is None
    return folder


@pytest.fixture
def owner(monkeypatch):
    """Return a function that gives a path to another user and group, as `stat` of a path or an open file tells it."""
    given, plain = {}, (os.stat, os.fstat)

    def changed(state):
        user, group = given.get((state.st_dev, state.st_ino), (state.st_uid, state.st_gid))
        return os.stat_result((*state[:4], user, group, *state[6:]))

    def give(path, user, group=None):
        state = plain[0](path)
        given[state.st_dev, state.st_ino] = user, state.st_gid if group is None else group

    monkeypatch.setattr(os, "stat", lambda *a, **k: changed(plain[0](*a, **k)))
    monkeypatch.setattr(os, "fstat", lambda *a, **k: changed(plain[1](*a, **k)))
    return give


def test_a_parent_that_others_can_change(base):
    for mode, safe in ((0o777, False), (0o775, False), (0o1777, True), (0o1775, True), (0o755, True), (0o711, True)):
        base.parent.chmod(mode)
        os.chown(base.parent, -1, SOMEBODY) if os.getuid() == 0 else None
        with_group = os.getuid() == 0 or not sharing._alone(os.getuid(), base.stat().st_gid)
        safe = safe or (mode == 0o775 and not with_group)
        assert sharing.changeable(base) == (None if safe else base.parent), oct(mode)
    assert sharing.changeable(base / "c" / "d") is None  # what is not there is nobody's


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o1777])
def test_a_parent_of_another_user(base, owner, mode):
    """Its owner can rename what lies in it, sticky or not."""
    base.parent.chmod(mode)
    owner(base.parent, SOMEBODY)
    assert sharing.changeable(base) == base.parent
    owner(base.parent, 0)
    assert sharing.changeable(base) is None


def test_the_group_of_one_user_may_write(base, owner, monkeypatch):
    import grp
    import pwd

    user = SimpleNamespace(pw_name="me", pw_gid=777)
    group = SimpleNamespace(gr_name="me", gr_mem=[])
    monkeypatch.setattr(pwd, "getpwuid", lambda _: user)
    monkeypatch.setattr(grp, "getgrgid", lambda _: group)
    base.chmod(0o775)
    owner(base, os.getuid(), 777)
    assert sharing.changeable(base) is None
    for other in (dict(gr_mem=["you"]), dict(gr_name="staff")):
        with monkeypatch.context() as patch:
            patch.setattr(grp, "getgrgid", lambda _, other=other: SimpleNamespace(**{**vars(group), **other}))
            assert sharing.changeable(base) == base
    base.chmod(0o777)
    assert sharing.changeable(base) == base


class Evil:
    def __reduce__(self):
        return os.mkdir, (os.environ["EVIL"],)


def test_a_file_of_another_user_is_not_unpickled(base, owner, tmp_path, monkeypatch):
    monkeypatch.setenv("EVIL", str(tmp_path / "ran"))
    path = base / "entry.kernel"
    payload = pickle.dumps(Evil())
    content = cache.hashlib.sha256(payload).digest() + payload
    path.write_bytes(content)
    owner(path, SOMEBODY)
    assert cache.read_entry(path) is None and not (tmp_path / "ran").exists()
    owner(path, os.getuid())
    path.chmod(0o666)
    assert cache.read_entry(path) is None and not (tmp_path / "ran").exists()
    path.chmod(0o644)
    (base / "link.kernel").symlink_to(path)
    os.mkfifo(base / "pipe.kernel")
    assert cache.read_entry(base / "link.kernel") is None and cache.read_entry(base / "pipe.kernel") is None
    assert not (tmp_path / "ran").exists()
    cache.read_entry(path)
    assert (tmp_path / "ran").exists()  # of ours, it runs


@pytest.mark.parametrize("how", ["folder", "above", "link"])
def test_prepared_kernels_are_left_alone(base, owner, tmp_path, monkeypatch, how):
    """NUMBA_CACHE_DIR is a shared sticky folder in which somebody was there first."""
    base.chmod(0o1777)
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cache, "_warn", cache._warn.__wrapped__)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(cache.config, "CACHE_DIR", str(base))
    prepared = base / "screenpath" / cache.cache_key()
    if how == "link":
        (tmp_path / "theirs" / cache.cache_key()).mkdir(parents=True)
        (base / "screenpath").symlink_to(tmp_path / "theirs")
        owner(tmp_path / "theirs", SOMEBODY)
    else:
        prepared.mkdir(parents=True)
        owner(prepared if how == "folder" else prepared.parent, SOMEBODY)
    (prepared / "a.kernel").write_bytes(b"code")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert cache.cache_folder.__wrapped__() == tmp_path / "home" / ".cache" / "screenpath" / cache.cache_key()
    assert "other users can change" in str(seen[0].message) and "cannot be used" in str(seen[-1].message)
    assert os.listdir(prepared) == ["a.kernel"]
