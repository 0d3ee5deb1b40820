"""Handwritten digits (MNIST: LeCun, Cortes and Burges) and letters of many typefaces (notMNIST:
Bulatov, 2011), 28 x 28 pixels.
"""

from typing import NamedTuple

import numpy as np

from amagold.datasets._download import DataFile, content_of

MEAN, DEVIATION = 0.1307, 0.3081  # of MNIST's training pixels between 0 and 1
SIDE = 28

_DIGITS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://raw.githubusercontent.com/fgnt/mnist/master/",
)
_LETTERS = ("https://github.com/davidflanagan/notMNIST-to-MNIST/raw/master/",)
_FILES = {
    (
        "mnist",
        "train-images-idx3-ubyte.gz",
    ): "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    (
        "mnist",
        "train-labels-idx1-ubyte.gz",
    ): "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    (
        "mnist",
        "t10k-images-idx3-ubyte.gz",
    ): "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    (
        "mnist",
        "t10k-labels-idx1-ubyte.gz",
    ): "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    (
        "notmnist",
        "t10k-images-idx3-ubyte.gz",
    ): "8e7f38ae95cc8f48e0986175ffc9137e5007ebcf3d8fdf6656c904eb9dab198b",
    (
        "notmnist",
        "t10k-labels-idx1-ubyte.gz",
    ): "5f8e6012f2ce730700d8d05fca098bc47f71d25b890e4bec7ac5ebfd614a4001",
}


class Images(NamedTuple):
    """One row of 784 pixels per image, and its class."""

    X: np.ndarray
    y: np.ndarray


class Mnist(NamedTuple):
    """The digits: 60,000 to learn from and 10,000 to test with."""

    train: Images
    test: Images


def mnist() -> Mnist:
    """The digits 0 to 9. Pixels are scaled by MNIST's mean and standard deviation, as the paper's
    code does.

    The files are looked for in the folder `mnist` of $AMAGOLD_DATA, then in the user's cache, then
    downloaded.
    """
    return Mnist(_images("mnist", "train"), _images("mnist", "t10k"))


def notmnist() -> Images:
    """10,000 letters A to J, scaled like the digits: images that a network of digits has never seen
    the like of.
    """
    return _images("notmnist", "t10k")


def _images(folder: str, part: str) -> Images:
    pixels, labels = (
        _array(folder, f"{part}-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1")
    )
    scaled = (pixels.reshape(len(pixels), SIDE * SIDE).astype(np.float32) / 255 - MEAN) / DEVIATION
    return Images(scaled.astype(np.float32), labels.astype(np.int32))


def _array(folder: str, name: str) -> np.ndarray:
    """An idx file: two zero bytes, the type, the number of axes, their lengths as big-endian
    integers, the values.
    """
    addresses = tuple(address + name for address in (_DIGITS if folder == "mnist" else _LETTERS))
    content = content_of(DataFile(folder, name, _FILES[folder, name], addresses))
    num_axes = content[3]
    lengths = np.frombuffer(content, ">i4", num_axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * num_axes).reshape(lengths)
