"""Ready models with starting values taken from the data."""

from ._deep import deep_gp as deep_gp
from ._deep import dsvi as dsvi
from ._deep import star as star
from ._depth import DepthReport as DepthReport
from ._depth import compare_with_one_layer as compare_with_one_layer
from ._gplvm import GPLVMStart as GPLVMStart
from ._gplvm import decoder as decoder
from ._gplvm import gplvm as gplvm
from ._gplvm import latent_positions as latent_positions
from ._shallow import default_kernel as default_kernel
from ._shallow import gp_regression as gp_regression
from ._shallow import sparse_gp_regression as sparse_gp_regression
