"""Data sets: found in the user's folder, downloaded once and checked, and a clear sentence when
they cannot be had.
"""

import gzip
import hashlib
import urllib.error

import numpy as np
import pytest

from amagold import datasets
from amagold.datasets import _download as download
from amagold.datasets._mnist import _FILES

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 28, 28)).astype(np.uint8)
LABELS = np.array([3, 1, 4, 1, 5, 9], np.uint8)


def idx(array):
    """An array as an idx file holds it."""
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes() + array.tobytes()


@pytest.fixture
def files(monkeypatch, tmp_path):
    """Small files in place of the real ones, by folder and name; nothing is to be found anywhere,
    and nothing answers.
    """
    contents = {where: idx(PIXELS if "images" in where[1] else LABELS) for where in _FILES}
    for where, content in contents.items():
        monkeypatch.setitem(_FILES, where, hashlib.sha256(content).hexdigest())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("AMAGOLD_DATA", raising=False)
    monkeypatch.setattr(download, "_fetch", refuse)
    return contents


def refuse(address):
    raise urllib.error.URLError("no answer")


def put(folder, files):
    for (part, name), content in files.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / part / name).write_bytes(gzip.compress(content))


def test_from_the_users_folder(files, monkeypatch, tmp_path):
    put(tmp_path / "mine", files)
    monkeypatch.setenv("AMAGOLD_DATA", str(tmp_path / "mine"))
    train, test = datasets.mnist()
    expected = (PIXELS.reshape(6, 784) / 255.0 - 0.1307) / 0.3081
    for images in (train, test, datasets.notmnist()):
        np.testing.assert_allclose(images.X, expected, atol=1e-5)
        assert images.X.dtype == np.float32
        assert images.y.tolist() == LABELS.tolist()


def test_downloaded_once(files, monkeypatch, tmp_path):
    asked = []

    def answer(address):
        asked.append(address)
        if "ossci" in address:
            return b"not the file"  # the next mirror is tried
        return gzip.compress(
            files["mnist" if "mnist/" in address else "notmnist", address.rsplit("/", 1)[1]]
        )

    monkeypatch.setattr(download, "_fetch", answer)
    first = datasets.mnist()
    assert len(asked) == 8
    assert len(datasets.notmnist().y) == 6
    monkeypatch.setattr(download, "_fetch", refuse)
    assert np.array_equal(datasets.mnist().train.X, first.train.X)
    kept = sorted(path.name for path in (tmp_path / "cache/amagold/mnist").iterdir())
    # and no temporary files
    assert kept == sorted(name for folder, name in files if folder == "mnist")


def test_a_cache_that_cannot_be_written_does_not_matter(files, monkeypatch, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    monkeypatch.setattr(
        download, "_fetch", lambda address: gzip.compress(files["mnist", address.rsplit("/", 1)[1]])
    )
    assert len(datasets.mnist().test.y) == 6


def test_missing(files):
    with pytest.raises(
        download.DataMissingError,
        match=r"mnist/train-images-idx3-ubyte.gz was neither found in .* AMAGOLD_DATA",
    ):
        datasets.mnist()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            gzip.compress(b"something else"),
            "must hold the known train-images-idx3-ubyte.gz, but its content has SHA-256",
        ),
        (b"no gzip file", "must be a gzip file, but it does not unpack"),
        (gzip.compress(b"cut short" * 1000)[:-9], "must be a gzip file, but it does not unpack"),
    ],
    ids=("another content", "not packed", "cut short"),
)
def test_damaged(files, monkeypatch, tmp_path, content, sentence):
    put(tmp_path, files)
    (tmp_path / "mnist/train-images-idx3-ubyte.gz").write_bytes(content)
    monkeypatch.setenv("AMAGOLD_DATA", str(tmp_path))
    with pytest.raises(download.DataMissingError, match=sentence):
        datasets.mnist()


def test_only_safe_addresses():
    with pytest.raises(ValueError, match="address must begin with https://"):
        download._fetch("file:///etc/hostname")
