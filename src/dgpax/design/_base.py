"""The contract of a criterion."""

import abc
from typing import ClassVar

import equinox as eqx

from ..errors import InputError
from ..typing import Array, Float
from ._beliefs import Beliefs


class AbstractCriterion(eqx.Module):
    """How much a run is worth, by what is believed about f. Its fields say what is wanted.

    `num_draws` is how many functions it asks for, which some models can't give; `needs_runs` says whether it asks for
    what was run so far.
    """

    num_draws: ClassVar[int] = 0
    needs_runs: ClassVar[bool] = False

    @abc.abstractmethod
    def scores(self, beliefs: Beliefs, x: Float[Array, "N E"]) -> Float[Array, " N"]:
        """What a run at each of these rows is worth once the pending ones are done; smooth in x."""

    @abc.abstractmethod
    def relative(self, worth: float, spread: float) -> float:
        """What a run is worth as a share of the spread of all values so far: 1 is much, 0.01 little."""

    def check(self, beliefs: Beliefs) -> None:
        """Raise an error that says what to do if it can't be used here."""
        if self.needs_runs and not bool(beliefs.runs.there.any()):
            raise InputError(
                f"The criterion {type(self).__name__} needs the runs so far: suggest(..., data=dgpax.dataset(x, y))."
            )


def check_output(criterion: AbstractCriterion, output: int | None, beliefs: Beliefs) -> int:
    """The number of the output that a criterion is about; the only one, if none is named."""
    num_outputs = len(beliefs.noise)
    if output is None and num_outputs == 1:
        return 0
    if output is None or not 0 <= output < num_outputs:
        raise InputError(
            f"The model has {num_outputs} outputs and {type(criterion).__name__} is about one of them; got "
            f"output={output}. Give {type(criterion).__name__}(output=...) a number from 0 to {num_outputs - 1}."
        )
    return output
