"""Cross-validation: folds, scores, bounds for every C, and the choice of a step."""
