"""Estimates of linear models with crossed random intercepts by restricted maximum likelihood, as
lme4 has them, from the normal equations.

With A = Z^T Z + diag(1 / lambda), lambda_f = sigma_f^2 / sigma^2 and V the variance of y over
sigma^2, log |V| = log |A| + sum_f n_f log lambda_f, and the criterion is

    log |V| + log |X^T V^-1 X| + (N - p) log(r^T V^-1 r)
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.sparse import csr_array, hstack


class Estimates(NamedTuple):
    coefficients: np.ndarray
    scales: np.ndarray  # of each factor's effects
    noise: float


def reml(y: np.ndarray, X: np.ndarray, codes: list[np.ndarray]) -> Estimates:
    """The factor with the most levels comes first: its block is diagonal, and is eliminated."""
    sizes = [int(code.max()) + 1 for code in codes]
    rows = np.arange(len(y))
    tables = [
        csr_array((np.ones(len(y)), (rows, code)), (len(y), size))
        for code, size in zip(codes, sizes, strict=True)
    ]
    first, others = tables[0], hstack(tables[1:]).tocsr()
    own = np.asarray(first.sum(axis=0), float)
    between = (first.T @ others).toarray()
    rest = (others.T @ others).toarray()
    known = np.column_stack([X, y])
    of_first, of_others = first.T @ known, others.T @ known
    squares, p = known.T @ known, X.shape[1]

    def solved(logs: np.ndarray) -> tuple[float, Estimates]:
        lambdas = np.exp(2.0 * logs)
        diagonal = own + 1.0 / lambdas[0]
        left = rest + np.diag(np.repeat(1.0 / lambdas[1:], sizes[1:]))
        factor = np.linalg.cholesky(left - between.T @ (between / diagonal[:, None]))
        right = of_others - between.T @ (of_first / diagonal[:, None])
        half = solve_triangular(factor, right, lower=True)
        found = squares - of_first.T @ (of_first / diagonal[:, None]) - half.T @ half
        coefficients = np.linalg.solve(found[:p, :p], found[:p, p])
        left_over = found[p, p] - found[p, :p] @ coefficients
        volume = np.log(diagonal).sum() + 2.0 * np.log(np.diag(factor)).sum()
        volume += np.dot(sizes, 2.0 * logs) + np.linalg.slogdet(found[:p, :p])[1]
        noise = np.sqrt(left_over / (len(y) - p))
        value = volume + (len(y) - p) * np.log(left_over)
        return value, Estimates(coefficients, noise * np.exp(logs), float(noise))

    start = np.full(len(codes), -1.0)
    options = {"xatol": 1e-3, "fatol": 1e-2}
    best = minimize(lambda logs: solved(logs)[0], start, method="Nelder-Mead", options=options)
    return solved(best.x)[1]
