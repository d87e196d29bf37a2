"""The two passes over the data that find out all there is to know about the steps of a certificate."""

from __future__ import annotations

import numpy as np

from screenpath.verify.certificate import PAIRS, Pair
from screenpath.verify.data import Block
from screenpath.verify.kernel import KernelPair, Kernels
from screenpath.verify.model import Model, Part
from screenpath.verify.products import Centred, norms_of, products_of


class Linear:
    """The products of rows with primal points."""

    def __init__(self, model: Model, source, pairs: dict):
        self.model, self.source, self.pairs = model, source, pairs

    def first(self, block: Block) -> None:
        """Look at a block of the first pass: no more than its sums are needed."""

    def settle(self) -> None:
        """Move the primal points beside the centres that the first pass has found."""
        if self.model.own:
            for pair in self.pairs.values():
                w, pair.lost = self.source.moved(pair.w[0], pair.entry.get("b_off", 0.0))
                pair.w = w[None]

    def of(self, block: Block, part: Part) -> tuple[dict, np.ndarray | None]:
        """Return, by step, the products of each node and bounds of their errors; and bounds of the rows' norms."""
        model, found = self.model, {}
        ground = [] if model.nodes > 1 else [np.zeros((2, part.c.size))]
        for k, pair in self.pairs.items():
            found[k] = tuple(np.stack(p) for p in zip(*(products_of(block, w) for w in pair.w), *ground, strict=True))
        return found, norms_of(block, model.penalised) if model.free or model.box else None


def check(header: dict, steps: list, source) -> list[Pair]:
    """Return what is known about every step that claims anything; both passes over ``source``."""
    model = Model(header, source)
    source = Centred(source) if model.own else source
    pairs = {entry["step"]: (KernelPair if model.kernel else Pair)(model, entry) for entry in steps}
    forms = (Kernels if model.kernel else Linear)(model, source, pairs)
    for block in source.passed(indices=True):
        for part in [] if model.own else model.parts(block):
            for pair in pairs.values():
                pair.add(block, part, pair.theta(part))
        forms.first(block)
    forms.settle()
    for block in source.passed(indices=False):
        parts = model.parts(block)
        products, norms = forms.of(block, parts[0])
        for part in parts:
            for k, pair in pairs.items():
                pair.look(block, part, products[k], norms)
                if model.box:
                    pair.keep(pairs, k, part, products, norms)
    for k, pair in pairs.items():
        for code, (allowed, row) in pair.allowed.items():
            if not pairs[k + PAIRS[code]].radius(pair.entry["C"]) < allowed:
                pair.faults.append(f"row {row + 1}: it is not proven to be at its end in the optimum")
    return list(pairs.values())
