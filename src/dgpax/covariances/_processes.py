"""On which processes the inducing variables live, and how these become outputs."""

from __future__ import annotations

import equinox as eqx

from ..inducing import AbstractInducing, OutputPairs, OutputPoints, Points
from ..kernels import LMC, AbstractKernel, AbstractMultiOutputKernel, PatchGrid, ProcessConvolution
from ..typing import Array, Float
from ._table import RuleTable


class IndependentProcesses(eqx.Module):
    """Processes with inducing variables of their own, mixed into outputs by W; None: they are the outputs."""

    kernel: AbstractKernel
    mixing: Float[Array, "P Q"] | None = None

    def num_blocks(self, num_outputs: int) -> int:
        """How many independent sets of inducing outputs there are."""
        return num_outputs if self.mixing is None else self.mixing.shape[1]

    def num_draws(self, num_outputs: int, num_inducing: int) -> int:
        """How many standard normal numbers a draw of a row's outputs takes: one per process."""
        return self.num_blocks(num_outputs)

    def rows(self, x: Float[Array, "*b N D"]) -> Float[Array, "*b N D"]:
        """The rows at which the kernel is evaluated."""
        return x


class SharedProcesses(eqx.Module):
    """Outputs that all depend on one set of inducing variables."""

    kernel: AbstractMultiOutputKernel

    def num_blocks(self, num_outputs: int) -> int:
        """One set, whatever the number of outputs."""
        return 1

    def num_draws(self, num_outputs: int, num_inducing: int) -> int:
        """One per output: they are drawn together."""
        return num_outputs

    def rows(self, x: Float[Array, "*b N D"]) -> Float[Array, "*b N D"]:
        """The rows at which the kernel is evaluated."""
        return x


class PatchProcesses(eqx.Module):
    """Independent processes of patches, one per channel; their values at all patches of an image are its outputs."""

    kernel: AbstractKernel
    grid: PatchGrid
    num_channels: int = eqx.field(static=True)

    def num_blocks(self, num_outputs: int) -> int:
        """One set per channel."""
        return self.num_channels

    def num_draws(self, num_outputs: int, num_inducing: int) -> int:
        """For the inducing outputs, which an image's patches share, and for what these leave open at every patch."""
        return num_outputs + self.num_channels * num_inducing

    def rows(self, x: Float[Array, "*b N D"]) -> Float[Array, "*b rows d"]:
        """The patches of all images, one after the other."""
        return self.grid.rows(x)

    def images(self, values: Float[Array, "*b rows C"]) -> Float[Array, "*b N P"]:
        """Values at `rows`, an image per row."""
        return values.reshape(*values.shape[:-2], -1, self.grid.num_patches * self.num_channels)


Processes = IndependentProcesses | SharedProcesses | PatchProcesses
processes = RuleTable(
    "processes", "The processes behind the outputs, for this inducing variable and kernel.", "inducing, kernel"
)

variables = RuleTable(
    "variables", "The inducing variables that these stand for under this kernel: mostly themselves.", "inducing, kernel"
)


@variables.register(AbstractInducing, AbstractKernel)
@variables.register(AbstractInducing, AbstractMultiOutputKernel)
@variables.register(Points, LMC)
@variables.register(Points, ProcessConvolution)
def _(inducing, kernel) -> AbstractInducing:
    return inducing


@variables.register(Points, AbstractMultiOutputKernel)
def _(inducing, kernel) -> OutputPoints:
    """All outputs at every point, which holds for any kernel."""
    return OutputPoints(inducing.locations, kernel.num_outputs)


@processes.register(AbstractInducing, AbstractKernel)
def _(inducing, kernel) -> IndependentProcesses:
    return IndependentProcesses(kernel)


@processes.register(AbstractInducing, LMC)
def _(inducing, kernel) -> IndependentProcesses:
    return IndependentProcesses(kernel.latent, mixing=kernel.mixing.value)


@processes.register(OutputPoints, LMC)
@processes.register(OutputPoints, AbstractMultiOutputKernel)
def _(inducing, kernel) -> SharedProcesses:
    return SharedProcesses(kernel)


@processes.register(OutputPairs, LMC)
@processes.register(OutputPairs, AbstractMultiOutputKernel)
def _(inducing, kernel) -> SharedProcesses:
    return SharedProcesses(kernel)


@processes.register(Points, ProcessConvolution)
def _(inducing, kernel) -> SharedProcesses:
    return SharedProcesses(kernel)
