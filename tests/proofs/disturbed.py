"""Small data for the checkers, and sums and products that are off by as much as they are said to be off by.

What a checker says has to hold for the data itself, whatever the errors are within their bounds: these are so large
here that none of them can be left out.
"""

from types import SimpleNamespace

import numpy as np

from screenpath.verify import certificate, products
from screenpath.verify.data import Block
from screenpath.verify.exact import ColumnSums
from screenpath.verify.file import BETWEEN, HIGH, LOW, pack

PRODUCTS, EXACTLY = products.products_of, certificate.product_of


def source(X, y, bias: float = 0.0):
    """Return a stand-in for a data file of dense rows, read in two blocks."""
    n, d = X.shape
    rows = np.column_stack([X, np.full(n, bias)]) if bias else X

    def passed(indices):
        for first, stop in ((0, n - n // 2), (n - n // 2, n)):
            part = rows[first:stop]
            ends, columns = np.arange(stop - first + 1) * part.shape[1], np.tile(np.arange(part.shape[1]), stop - first)
            yield Block(first, y[first:stop], ends, columns, part.ravel().copy())

    return SimpleNamespace(n=n, d=d, passed=passed)


def stored(theta, low=0.0, high=1.0) -> dict:
    """Return dual variables as a certificate has them."""
    theta = np.asarray(theta, dtype=np.float64).ravel()
    states = np.where(theta == low, LOW, np.where(theta == high, HIGH, BETWEEN)).astype(np.uint8)
    return {"states": pack(states), "between": theta[states == BETWEEN]}


def disturb(monkeypatch, rng, of_sums: float, of_products: float) -> None:
    """Let sums over rows and products of rows be off, at random signs, by what is said of them."""

    class Sums(ColumnSums):
        def __init__(self, d):
            super().__init__(d)
            self.total = of_sums * rng.choice([-1.0, 1.0], d)
            self.error = np.abs(self.total)

    def products_of(block, w):
        found, error = PRODUCTS(block, w)
        return found + of_products * rng.choice([-1.0, 1.0], found.size), error + of_products

    def product_of(*arguments):
        t, error = EXACTLY(*arguments)
        return t + of_products * float(rng.choice([-1.0, 1.0])), error + of_products

    monkeypatch.setattr(certificate, "ColumnSums", Sums)
    monkeypatch.setattr(certificate, "product_of", product_of)
    monkeypatch.setattr(products, "products_of", products_of)
