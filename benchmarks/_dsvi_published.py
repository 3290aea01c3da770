"""Tables 7 and 8 of Salimbeni & Deisenroth 2017, and its MNIST accuracies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

PAPER = "Salimbeni & Deisenroth 2017"
MODELS = ("SGP, 100 points", "SGP, 500 points", "2", "3", "4", "5")
LOG_LIKELIHOODS = {
    "boston": "-2.47(0.05) -2.40(0.07) -2.47(0.05) -2.49(0.05) -2.48(0.05) -2.49(0.05)",
    "concrete": "-3.18(0.02) -3.09(0.02) -3.12(0.01) -3.13(0.01) -3.14(0.01) -3.13(0.01)",
    "energy": "-1.29(0.02) -0.63(0.03) -0.73(0.02) -0.75(0.02) -0.76(0.02) -0.74(0.02)",
    "kin8nm": "0.97(0.00) 1.15(0.00) 1.34(0.01) 1.37(0.01) 1.38(0.01) 1.38(0.01)",
    "naval": "6.57(0.15) 7.01(0.05) 6.76(0.19) 6.62(0.18) 6.61(0.17) 6.41(0.28)",
    "power": "-2.79(0.01) -2.75(0.01) -2.75(0.01) -2.74(0.01) -2.74(0.01) -2.73(0.01)",
    "protein": "-2.91(0.00) -2.83(0.00) -2.81(0.00) -2.75(0.00) -2.73(0.00) -2.71(0.00)",
    "wine_red": "-0.95(0.01) -0.93(0.01) -0.95(0.01) -0.95(0.01) -0.95(0.01) -0.95(0.01)",
}
ERRORS = {
    "boston": "– 2.73(0.12) 2.90(0.17) 2.93(0.16) 2.90(0.15) 2.92(0.17)",
    "concrete": "– 5.53(0.12) 5.61(0.10) 5.64(0.10) 5.68(0.10) 5.65(0.10)",
    "energy": "– 0.47(0.02) 0.47(0.01) 0.48(0.01) 0.48(0.01) 0.47(0.01)",
    "kin8nm": "– 0.08(0.00) 0.06(0.00) 0.06(0.00) 0.06(0.00) 0.06(0.00)",
    "naval": "– 0.00(0.00) 0.00(0.00) 0.00(0.00) 0.00(0.00) 0.00(0.00)",
    "power": "– 3.79(0.03) 3.79(0.03) 3.73(0.04) 3.71(0.04) 3.68(0.03)",
    "protein": "– 4.10(0.03) 4.00(0.03) 3.81(0.04) 3.74(0.04) 3.72(0.04)",
    "wine_red": "0.63(0.01) 0.62(0.01) 0.63(0.01) 0.63(0.01) 0.63(0.01) 0.63(0.01)",
}


def _rows() -> Iterator[Mapping[str, str]]:
    for dataset, values in LOG_LIKELIHOODS.items():
        for model, density, error in zip(MODELS, values.split(), ERRORS[dataset].split(), strict=True):
            yield {
                "dataset": dataset,
                "layers": model,
                "by": PAPER,
                "log_likelihood": _plus_minus(density),
                "rmse": _plus_minus(error),
            }


def _plus_minus(text: str) -> str:
    return text.replace("(", " ± ").replace(")", "")


PUBLISHED = tuple(_rows())
IMAGES = tuple(
    {"dataset": "mnist", "layers": model, "by": PAPER, "accuracy": accuracy}
    for model, accuracy in zip(MODELS[:4], ("97.48%", "97.9%", "98.06%", "98.11%"), strict=True)
)
