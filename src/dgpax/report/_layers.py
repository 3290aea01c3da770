"""What each layer does, and what is left open in it."""

from __future__ import annotations

import numpy as np

from ..data import Dataset
from ..errors import DgpaxError
from ..fits import AbstractFit
from ..kernels import ActiveDimensions, Product, Sum
from ..layers import AbstractLayer, Append, GPLayer, LatentVariables
from ..prediction import LayerDraws, compositional_report, layer_draws
from ._html import Tag, section, table, tag
from ._svg import Axes, chart, line, spanning
from ._text import shown

NUM_DRAWS = 30
MOST_ROWS = 80


def layers_section(fitted: AbstractFit, data: Dataset, seed: int = 0) -> Tag:
    """A table of the layers, the compositional report, and draws of every layer if it has one input."""
    rows = [_describe(index, layer) for index, layer in enumerate(fitted.model.layers)]
    return section(
        "layers",
        "What each layer does",
        heaviest_of_many(fitted),
        table(("layer", "what it is", "outputs", "inducing variables"), rows, wide=(3,)),
        _uncertainty(fitted, data, seed),
    )


def heaviest_of_many(fitted: AbstractFit) -> Tag | None:
    """That a fit is a mixture, where its model is one of several."""
    weights = [weight for weight, _ in fitted.parts]
    if len(weights) == 1:
        return None
    return tag("p", f"Predictions are a mixture of {len(weights)} models; this is one of those with the most weight.")


def _describe(index: int, layer: AbstractLayer) -> tuple[str, str, str, str]:
    if isinstance(gp := layer.random, GPLayer):
        own, inducing = "" if gp is layer else f"{type(layer).__name__} of a ", gp.inducing
        held = "none: exact" if inducing is None else f"{inducing.num_inducing} {type(inducing).__name__.lower()}"
        parts = f"{own}Gaussian process, {_kernel(gp.kernel)}, mean {type(gp.mean).__name__.lower()}"
        return str(index), parts, str(gp.num_outputs), held
    if isinstance(layer, LatentVariables):
        return str(index), "latent variables beside the inputs", f"+ {layer.num_latents}", ""
    if isinstance(layer, Append):
        source = "the model's inputs" if layer.source == "inputs" else f"what layer {layer.source} made"
        return str(index), f"puts {source} beside what comes in", "", ""
    return str(index), type(layer).__name__, "", ""


def _kernel(kernel) -> str:
    if isinstance(kernel, ActiveDimensions):
        return _kernel(kernel.kernel)
    if not isinstance(kernel, Sum | Product):
        return type(kernel).__name__
    return (" × " if isinstance(kernel, Product) else " + ").join(_kernel(part) for part in kernel.kernels)


def _uncertainty(fitted: AbstractFit, data: Dataset, seed: int) -> list[Tag]:
    """The compositional report as text, and pictures where there is one input to draw over."""
    if len(fitted.model.layers) == 1:
        return [
            tag("p", "With one layer, the model is a Gaussian process: there is nothing to compose.", class_="muted")
        ]
    try:
        text = str(compositional_report(fitted, data.x, seed=seed))
        draws = _draws(fitted, data, seed) if data.num_inputs == 1 else None
    except DgpaxError as error:
        return [tag("p", shown(f"What is left open in the layers can't be said: {error}", 500), class_="muted")]
    parts = [tag("pre", text)]
    if draws is not None:
        parts.append(tag("div", _pictures(draws), class_="figures"))
    return parts


def _draws(fitted: AbstractFit, data: Dataset, seed: int) -> LayerDraws:
    low, high = float(np.min(data.x)), float(np.max(data.x))
    grid = np.linspace(low, high, MOST_ROWS)[:, None].astype(data.x.dtype)
    return layer_draws(fitted, grid, num_draws=NUM_DRAWS, seed=seed)


def _pictures(draws: LayerDraws) -> list[Tag]:
    """Every layer with one input and output as a bundle of functions, and their composition."""
    panels = [
        (f"Layer {index}", np.asarray(at)[:, 0], np.asarray(values)[:, :, 0])
        for index, (at, values) in enumerate(zip(draws.at, draws.functions, strict=True))
        if at.shape[1] == values.shape[2] == 1
    ]
    panels.append(("All layers together", np.asarray(draws.x)[:, 0], np.asarray(draws.composition)[:, :, 0]))
    return [_bundle(title, x, functions) for title, x, functions in panels]


def _bundle(title: str, x: np.ndarray, functions: np.ndarray) -> Tag:
    order = np.argsort(x)
    axes = Axes(spanning(x), spanning(functions), "input", "output")
    return chart(
        title,
        "Functions drawn from the posterior; where they fan out, the layer isn't determined by the data.",
        axes,
        [line(axes, x[order], function[order], "draw") for function in functions],
    )
