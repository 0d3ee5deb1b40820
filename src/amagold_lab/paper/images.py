"""Images for the networks: digits to learn, digits to test with, and letters that are neither."""

import numpy as np

from amagold.datasets._download import DataMissingError
from amagold.datasets._mnist import Images, mnist, notmnist
from amagold_lab.paper.experiment import UnavailableError

NUM_CLASSES = 10
NUM_PIXELS = 784


def digits(source: str, num_train: int, num_test: int) -> tuple[Images, Images]:
    """Images to learn from and to test with: MNIST's, or synthetic ones."""
    if source == "synthetic":
        images = _synthetic(num_train + num_test, seed=0)
        return Images(images.X[:num_train], images.y[:num_train]), Images(
            images.X[num_train:], images.y[num_train:]
        )
    try:
        train, test = mnist()
    except DataMissingError as reason:
        raise UnavailableError(str(reason)) from reason
    # a random part, because the files' order is that of the writers
    chosen = np.sort(np.random.default_rng(0).permutation(len(train.y))[:num_train])
    return Images(train.X[chosen], train.y[chosen]), Images(test.X[:num_test], test.y[:num_test])


def letters(source: str, num_test: int) -> np.ndarray:
    """Images of none of the classes."""
    if source == "synthetic":
        return _synthetic(num_test, seed=1).X
    try:
        return notmnist().X[:num_test]
    except DataMissingError as reason:
        raise UnavailableError(str(reason)) from reason


def _synthetic(count: int, seed: int) -> Images:
    """A random pattern for each class under noise: enough for a network to learn, and made
    in code.
    """
    generator = np.random.default_rng(seed)
    patterns = generator.normal(0.0, 0.5, (NUM_CLASSES, NUM_PIXELS))
    labels = generator.integers(0, NUM_CLASSES, count).astype(np.int32)
    return Images(
        (patterns[labels] + generator.normal(0.0, 2.0, (count, NUM_PIXELS))).astype(np.float32),
        labels,
    )
