"""Kernel expectations under Gaussian inputs, in closed form: what uncertain inputs and latent variables need."""

from . import _kernels as _kernels
from ._bumps import Bumps as Bumps
from ._expansion import Expansion as Expansion
from ._expansion import expansion as expansion
from ._psi import psi0 as psi0
from ._psi import psi1 as psi1
from ._psi import psi2 as psi2
