"""Files beside data and models: names of rows and of modes."""

import errno
import os

import numpy as np
import pytest

import s3cmtf
from s3cmtf import ArgumentError, Model, S3cmtfWarning, Tensor

MODES = ("user", "film\t1", "month")


@pytest.fixture(scope="module")
def small():
    tensor = Tensor((["", "b", "c"], ["x", "y", "z"], [0, 1, 2]), [1.0, 2.0, 3.0], modes=MODES)
    return s3cmtf.fit(tensor, rank=1, epochs=2)


@pytest.fixture(scope="module")
def labelled():
    """A model with every kind of names."""
    tensor = Tensor((["a", "b", "c"], ["x", "y", "z"], [0, 1, 2]), [1.0, 2.0, 3.0], modes=MODES)
    return s3cmtf.fit(tensor, s3cmtf.Matrix(Tensor((["a", "b", "c"], ["k", "l", "k"])), 0, "full", weight=1), rank=1, epochs=2)


def test_names_of_modes_survive_files(small, tmp_path, named_model, frame):
    path = tmp_path / "model.s3m"
    small.save(path)
    assert Model.load(path).modes == MODES
    assert Model.load(path, modes=["a", "b", "c"]).modes == ("a", "b", "c")
    named_model.save(path)
    loaded = Model.load(path)
    assert loaded.modes == ("user", "film", "month")
    assert np.array_equal(loaded.predict(frame[["month", "film", "user"]]), named_model.predict(frame))


def test_names_of_modes_of_another_model(small, model, named_model, tmp_path):
    path = tmp_path / "model.s3m"
    small.save(path)
    named_model.save(tmp_path / "other.s3m")
    os.replace(tmp_path / "other.s3m", path)
    with pytest.warns(S3cmtfWarning, match="model.s3m.modes.tsv are ignored: it was saved with another model"):
        assert Model.load(path).modes is None
    (tmp_path / "model.s3m.modes.tsv").write_bytes(b"\xff")
    with pytest.warns(S3cmtfWarning, match="are ignored"):
        assert Model.load(path).modes is None
    model.save(path)
    assert Model.load(path).modes is None
    assert not (tmp_path / "model.s3m.modes.tsv").exists()


def test_the_empty_label(small, tmp_path):
    small.save(tmp_path / "model.s3m")
    assert list(Model.load(tmp_path / "model.s3m").labels[0]) == ["", "b", "c"]


@pytest.mark.parametrize(("label", "why"), [("\ud800", "not valid Unicode"), ("a\0b", "contains NUL")])
def test_names_that_cannot_be_saved(label, why, small, tmp_path):
    small.save(tmp_path / "x.s3m")
    before = {of.name: of.read_bytes() for of in tmp_path.iterdir()}
    bad = Tensor(([label, "b"], [0, 1]), [1.0, 2.0])
    for save in (s3cmtf.fit(bad, rank=1, epochs=1).save, bad.save):
        with pytest.raises(ArgumentError, match=f"cannot be saved: it {'is ' * why.startswith('not')}{why}"):
            save(tmp_path / "x.s3m")
    modes = Tensor(([0, 1], [0, 1]), [1.0, 2.0], modes=[label, "b"])
    with pytest.raises(ArgumentError, match="cannot be saved"):
        s3cmtf.fit(modes, rank=1, epochs=1).save(tmp_path / "x.s3m")
    assert {of.name: of.read_bytes() for of in tmp_path.iterdir()} == before


def test_a_full_disk(small, named_model, tmp_path, monkeypatch):
    path = tmp_path / "x.s3m"
    small.save(path)
    before = {of.name: of.read_bytes() for of in tmp_path.iterdir()}

    def fail(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    for save in (named_model.save, Tensor((["a", "b"], [0, 1])).save):
        with pytest.raises(s3cmtf.SystemCallError, match=r"x.*\.mode1\.tsv: No space left on device"):
            save(path)
    assert {of.name: of.read_bytes() for of in tmp_path.iterdir()} == before


def test_a_failure_to_save_leaves_no_files(small, tmp_path):
    (tmp_path / "folder.s3m").mkdir()
    with pytest.raises(OSError):
        small.save(tmp_path / "folder.s3m")
    assert [of.name for of in tmp_path.iterdir()] == ["folder.s3m"]


def test_a_folder_that_does_not_exist(small, model, tmp_path):
    path = tmp_path / "missing" / "x.s3m"
    for save in (small.save, model.save, Tensor((["a", "b"], [0, 1])).save, Tensor(([0], [0])).save):
        with pytest.raises(s3cmtf.FileError) as failure:
            save(path)
        assert isinstance(failure.value, FileNotFoundError)
        assert str(failure.value) == f"{path}: there is no folder {tmp_path / 'missing'}"
    assert not list(tmp_path.iterdir())


def test_names_of_a_file_that_is_replaced(small, model, tmp_path):
    path = tmp_path / "x.s3m"
    labelled = s3cmtf.Matrix(Tensor((["b", "c"], ["k", "l"])), 0, "full", weight=1)
    tensor = Tensor((["", "b", "c"], ["x", "y", "z"], ["1", "2", "3"]), [1.0, 2.0, 3.0])
    s3cmtf.fit(tensor, [labelled, labelled], rank=1, epochs=2).save(path)
    assert list(Model.load(path).matrices[1].labels) == ["k", "l"]
    assert (tmp_path / "x.s3m.matrix2.tsv").read_bytes() == b"index\tname\n1\tk\n2\tl\n"
    (tmp_path / "x.s3m.model.tsv").write_text("another file")
    small.save(path)
    names = ["x.s3m", "x.s3m.mode1.tsv", "x.s3m.mode2.tsv", "x.s3m.model.tsv", "x.s3m.modes.tsv"]
    assert sorted(of.name for of in tmp_path.iterdir()) == names
    small.save(f"{tmp_path}//x.s3m")
    assert sorted(of.name for of in tmp_path.iterdir()) == names
    tensor.save(tmp_path / "y.coo")
    Tensor((["a", "b"], [0, 1])).save(tmp_path / "y.coo")
    assert sorted(of.name for of in tmp_path.glob("y.*")) == ["y.coo", "y.mode1.tsv"]
    assert Tensor.open(tmp_path / "y.coo").labels[1] is None


def test_a_model_is_not_mapped(model, tmp_path):
    path = tmp_path / "cut.s3m"
    model.save(path)
    loaded = Model.load(path)
    os.truncate(path, 0)
    assert loaded.predict_cell(1, 1, 1) == model.predict_cell(1, 1, 1)


def _link_to_own(path, target):
    target.write_bytes(b"index\tname\n1\tmine\n")
    path.symlink_to(target)


def _link_to_other(path, target):
    target.write_bytes(b"precious")
    path.symlink_to(target)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes")
@pytest.mark.parametrize(
    "make",
    [
        _link_to_own,
        _link_to_other,
        lambda path, target: path.symlink_to(target),
        lambda path, target: path.mkdir(),
        lambda path, target: os.mkfifo(path),
        lambda path, target: path.write_bytes(b"precious"),
    ],
)
@pytest.mark.parametrize("end", ["mode1", "modes", "matrix1"])
def test_only_own_files_are_replaced(make, end, labelled, model, tmp_path):
    path, target = tmp_path / f"x.s3m.{end}.tsv", tmp_path / "target"
    make(path, target)
    kind = os.lstat(path).st_mode
    before = target.read_bytes() if target.exists() else None
    with pytest.warns(S3cmtfWarning, match=f"is now called .*{end}.tsv.old"):
        labelled.save(tmp_path / "x.s3m")
    assert path.is_file() and not path.is_symlink()
    assert path.read_bytes().startswith(b"index\tname")
    assert os.lstat(f"{path}.old").st_mode == kind
    assert (target.read_bytes() if target.exists() else None) == before
    # A model without names: what would be read as its names is renamed, unless this program wrote it.
    path.unlink()
    os.rename(f"{path}.old", path)
    is_names = end == "modes" or before == b"index\tname\n1\tmine\n"
    if is_names:
        with pytest.warns(S3cmtfWarning, match="is now called"):
            model.save(tmp_path / "x.s3m")
    else:
        model.save(tmp_path / "x.s3m")
    assert os.path.lexists(path) != is_names
    assert (target.read_bytes() if target.exists() else None) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes")
def test_names_beside_a_tensor_replace_only_own_files(tmp_path):
    tensor = Tensor((["a", "b"], ["x", "y"]), [1.0, 2.0])
    for make in (_link_to_own, lambda path, target: os.mkfifo(path)):
        make(tmp_path / "x.mode2.tsv", tmp_path / "target")
        with pytest.warns(S3cmtfWarning, match="is now called .*x.mode2.tsv.old"):
            tensor.save(tmp_path / "x.coo")
        assert not (tmp_path / "x.mode2.tsv").is_symlink() and list(Tensor.open(tmp_path / "x.coo").labels[1]) == ["x", "y"]
        (tmp_path / "x.mode2.tsv").unlink()
    assert (tmp_path / "target").read_bytes() == b"index\tname\n1\tmine\n"
    assert (tmp_path / "x.mode2.tsv.old2").is_fifo()
