"""The objectives of the models, as run.json writes them."""

from __future__ import annotations

OBJECTIVES = {
    "svm": "min 1/2 ||w||^2 + C sum_i s_i max(0, 1 - y_i x_i.w)",
    "lad": "min 1/2 ||w||^2 + C sum_i s_i |y_i - x_i.w|",
    "quantile": "min 1/2 ||w||^2 + C sum_i s_i max((tau - 1) t_i, tau t_i), t_i = y_i - x_i.w",
    "svr": "min 1/2 ||w||^2 + C sum_i s_i max(0, |y_i - x_i.w| - epsilon)",
    "l1svm": "min 1/2 sum_i s_i max(0, 1 - y_i (x_i.w + b))^2 + lambda ||w||_1",
    "sparse-svm": "min 1/s sum_i s_i l(1 - y_i x_i.w) + alpha/2 ||w||^2 + beta ||w||_1, s = sum_i s_i (without weights "
    "the number of samples), LOSS; more than two classes: margins x_i.(w_yi - w_c) over all c != y_i, a weight for "
    "each feature and class",
    "huber": "min 1/s sum_i s_i h(y_i - x_i.w) + alpha/2 ||w||^2 + beta ||w||_1, s = sum_i s_i (without weights the "
    "number of samples), h(t) = t^2/(2 gamma) if |t| <= gamma, else |t| - gamma/2",
}
for _name in ("lad", "quantile", "svr"):
    _loss, _, _terms = OBJECTIVES[_name].partition(" sum_i s_i ")[2].partition(", t_i")
    OBJECTIVES[f"sparse-{_name}"] = (
        f"min 1/s sum_i s_i {_loss} + alpha/2 ||w||^2 + beta ||w||_1, s = sum_i s_i (without weights the number of "
        f"samples){_terms and ', t_i'}{_terms}"
    )
GROUPED = "((1 - tau) sum_g p_g ||w_g|| + tau ||w||_1)"
EARLIER = {  # of runs of 0.1.0 from before these models had weights; sparse-svm had one loss, without an intercept
    "l1svm": "min 1/2 sum_i max(0, 1 - y_i (x_i.w + b))^2 + lambda ||w||_1",
    "sparse-svm": "min 1/n sum_i l(1 - y_i x_i.w) + alpha/2 ||w||^2 + beta ||w||_1, l the hinge smoothed by gamma; "
    "more than two classes: margins x_i.(w_yi - w_c) over all c != y_i, a weight for each feature and class",
}


def objective_of(header: dict, penalties: bool, written: object = None) -> str:
    """Return the objective as run.json writes it; ``written`` tells which of several texts it is."""
    text, free = OBJECTIVES[header["model"]], header.get("intercept") == "free"
    sparse, groups = header["model"] == "sparse-svm", "groups" in header
    if groups:
        text = text.partition("; more than two classes")[0].replace("||w||_1", GROUPED)
    later = penalties or "weights" in header or sparse and ("loss" in header or free or header["smoothing"] == 0.0)
    if not (later or groups) and written == EARLIER.get(header["model"]):
        return EARLIER[header["model"]]
    if sparse:
        smoothed = "l(t) = max(0, t)" if header["smoothing"] == 0.0 else "l the hinge smoothed by gamma"
        text = text.replace("LOSS", "l(t) = 1/2 max(0, t)^2" if "loss" in header else smoothed)
        text = text.replace("y_i x_i.w", "y_i (x_i.w + b)") if free else text
        of_classes = text.replace("(w_yi - w_c)", "(w_yi - w_c) + b_yi - b_c") + "; the b_c sum to 0"
        text = of_classes if free and written == of_classes else text  # up to 0.1.0 classes had intercepts, too
    form = "w.Phi(x_i)" if "kernel" in header else "x_i.w"
    text = text.replace("x_i.w", form)
    if free:
        text = text.replace(f"y_i {form}", f"y_i ({form} + b)").replace(f"- {form}", f"- {form} - b")
    text += ", Phi(x).Phi(z) = K(x, z)" if "kernel" in header else ""
    text += "; the loss smoothed by `smoothing`" if "kernel" in header and header.get("smoothing") else ""
    text = text.replace("||w||_1", "sum_j p_j |w_j|") if penalties else text
    net = not sparse and "sparse" in header["model"]
    end = "; the loss smoothed by gamma" if net and header["smoothing"] else ""
    if "signs" in header and "C sum_i" not in text:
        text += "; signs_j w_j >= 0" if written == f"{text}; signs_j w_j >= 0{end}" else "; w_j >= 0"
    text += end
    pairs = f"for each pair of classes, on their rows: {text}"  # of two labels there is one, of all rows
    one = written == pairs and "rest" not in (header.get("labels") or {}).values()
    return pairs if header.get("one_vs_one") or one else text
