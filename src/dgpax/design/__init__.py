"""From a fit to the next experiment: where a simulator should run next, and a study that remembers."""

from ._alc import ALC as ALC
from ._base import AbstractCriterion as AbstractCriterion
from ._beliefs import Beliefs as Beliefs
from ._ei import ExpectedImprovement as ExpectedImprovement
from ._entropy import ContourEntropy as ContourEntropy
from ._space import Between as Between
from ._space import OneOf as OneOf
from ._space import Space as Space
from ._space import Whole as Whole
from ._study import Study as Study
from ._suggest import Suggestion as Suggestion
from ._suggest import propose as propose
from ._suggest import suggest as suggest
from ._thompson import Thompson as Thompson
from ._variance import Variance as Variance
from ._vigf import VIGF as VIGF
