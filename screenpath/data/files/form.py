"""The form of a table: which columns are features and how they are encoded. Training data fixes it, new data follows
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from screenpath.data.safe.values import are_words, is_mapping, is_text


@dataclass(frozen=True)
class Form:
    """Columns of a table; training data fixes them, new data follows them."""

    target: str | None  # column of labels or targets; None if there is none
    columns: tuple[str, ...]  # columns of features, in their order
    # sorted values of each one-hot encoded column
    one_hot: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(
            name if name not in self.one_hot else f"{name}={value}"
            for name in self.columns
            for value in self.one_hot.get(name, ("",))
        )

    def stripped(self) -> Form:
        """Return the form with blanks around names removed; older runs stored them."""
        hot = {name.strip(): values for name, values in self.one_hot.items()}
        return Form(self.target and self.target.strip(), tuple(name.strip() for name in self.columns), hot)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Return the columns that are not one-hot encoded."""
        return tuple(name for name in self.columns if name not in self.one_hot)

    def record(self) -> dict:
        one_hot = {name: list(values) for name, values in self.one_hot.items()}
        return {"target": self.target, "columns": list(self.columns), "one_hot": one_hot}

    @classmethod
    def of_record(cls, record: dict) -> Form:
        one_hot = {name: tuple(values) for name, values in record["one_hot"].items()}
        return cls(record["target"], tuple(record["columns"]), one_hot)


def is_form(value) -> bool:
    """Tell whether a JSON value is a valid record of a form."""
    if not is_mapping(value) or set(value) != {"target", "columns", "one_hot"} or not are_words(value["columns"]):
        return False
    one_hot, columns = value["one_hot"], value["columns"]
    known = is_mapping(one_hot) and all(name in columns and are_words(values) for name, values in one_hot.items())
    return known and (value["target"] is None or is_text(value["target"]))
