"""The steps of a search for the best model; the nested workflows are in tuning.yaml.

The model is a line through noisy points, fitted by gradient descent. With small rates it learns too little, with large
ones it does not converge.
"""

from typing import Any

from horae import App, GiveUp

app = App("tuning")

POINTS = [(x / 10, 3 * x / 10 + (0.2 if x % 2 else -0.2)) for x in range(30)]


@app.job("tuning-grid")
def grid(rates: list[float]) -> list[dict[str, Any]]:
    """Return the combinations to try; their number is known only at run time."""
    return [{"rate": rate, "rounds": rounds} for rate in rates for rounds in (5, 20)]


@app.job("tuning-fit")
def fit(fold: int, folds: int, rate: float, rounds: int) -> float:
    """Fit to all points except one fold; return the mean square error of that fold."""
    train = [point for n, point in enumerate(POINTS) if n % folds != fold]
    held, slope = POINTS[fold::folds], 0.0
    for _ in range(rounds):
        slope -= rate * sum(2 * (slope * x - y) * x for x, y in train) / len(train)
    if abs(slope) > 1000:
        raise GiveUp(f"It does not converge with a rate of {rate}.")
    return sum((slope * x - y) ** 2 for x, y in held) / len(held)


@app.job("tuning-mean")
def mean(errors: list[float]) -> float:
    """Return the mean error of all folds."""
    return round(sum(errors) / len(errors), 4)


@app.job("tuning-choose")
def choose(models: list[dict[str, Any] | None]) -> dict[str, Any]:
    """Return the model with the smallest error; failed ones are null."""
    return min((model for model in models if model is not None), key=lambda model: float(model["error"]))
