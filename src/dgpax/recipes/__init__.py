"""From what a person says about a table to a trained model: the one place where defaults live.

A `Recipe` holds the words, `Rows` the table. `plan` makes of both what `fit` takes, and `train` trains it.
"""

from ._gplvm import train_gplvm as train_gplvm
from ._recipe import Recipe as Recipe
from ._rows import Rows as Rows
from ._rows import padded as padded
from ._starts import NOISE as NOISE
from ._train import train as train
from ._train import train_more as train_more
from ._ways import Plan as Plan
from ._ways import natural_steps as natural_steps
from ._ways import plan as plan
from ._ways import settling as settling
from ._ways import takes_natural_steps as takes_natural_steps
