"""A layer of Gaussian processes."""

from __future__ import annotations

import equinox as eqx

from ..covariances import IndependentProcesses, Processes, processes, variables
from ..errors import InputError
from ..inducing import AbstractInducing, OutputPairs, OutputPoints
from ..kernels import AbstractKernel, AbstractMultiOutputKernel
from ..means import AbstractMean, Zero
from ._base import AbstractLayer


class GPLayer(AbstractLayer):
    """The prior of one layer: P outputs with a kernel, a mean and inducing variables.

    Outputs are independent, with a kernel that is shared or whose parameters have a leading axis P; or a
    multi-output kernel says how they depend on each other. `inducing` may be None for exact inference. A layer
    holds no posterior and no number of rows.

    >>> import numpy as np
    >>> from dgpax import GPLayer
    >>> from dgpax.inducing import Points
    >>> from dgpax.kernels import RBF
    >>> layer = GPLayer(RBF(0.3), num_outputs=2, inducing=Points(np.linspace(0.0, 1.0, 7)[:, None]))
    >>> layer.num_outputs
    2
    """

    kernel: AbstractKernel | AbstractMultiOutputKernel
    num_outputs: int = eqx.field(static=True, default=1)
    mean: AbstractMean = eqx.field(default_factory=Zero)
    inducing: AbstractInducing | None = None

    def __check_init__(self):
        if self.num_outputs < 1:
            raise InputError(f"GPLayer(num_outputs=...) must be at least 1; got {self.num_outputs}.")
        if isinstance(self.kernel, AbstractMultiOutputKernel) and self.kernel.num_outputs != self.num_outputs:
            raise InputError(
                f"The kernel has {self.kernel.num_outputs} outputs, but the layer {self.num_outputs}. "
                f"Set GPLayer(num_outputs={self.kernel.num_outputs})."
            )
        if isinstance(self.inducing, OutputPoints | OutputPairs):
            self.inducing.check_outputs(self.num_outputs)

    def apply(self, given, draw):
        return draw(given.last)

    @property
    def random(self):
        return self

    @property
    def num_draws(self) -> int:
        """How many standard normal numbers a draw of a row takes."""
        return self.processes().num_draws(self.num_outputs, self.own_inducing().num_inducing)

    @property
    def num_blocks(self) -> int:
        """How many independent sets of inducing outputs there are."""
        return self.processes().num_blocks(self.num_outputs)

    def own_inducing(self) -> AbstractInducing:
        """The layer's inducing variables, or an error that says how to give it some."""
        if self.inducing is None:
            raise InputError(
                "This layer has no inducing variables: give it some, GPLayer(kernel, inducing=Points(z)), "
                "or use exact inference."
            )
        return variables(self.inducing, self.kernel)

    def processes(self) -> Processes:
        """The processes that the inducing variables belong to."""
        if self.inducing is None:
            return IndependentProcesses(self.independent_kernel())
        return processes(self.own_inducing(), self.kernel)

    def independent_kernel(self) -> AbstractKernel:
        """The kernel of a layer whose outputs are independent, or an error that says what to do."""
        if isinstance(self.kernel, AbstractMultiOutputKernel):
            raise InputError(
                f"{type(self.kernel).__name__} makes outputs depend on each other, which exact and collapsed inference "
                'can\'t do. Give the layer inducing variables and use inference="variational".'
            )
        return self.kernel
