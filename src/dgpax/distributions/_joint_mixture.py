"""A placeholder until the branch with joint mixtures is merged."""

from __future__ import annotations

import equinox as eqx

from ._joint import AbstractJointGaussian


class JointMixture(eqx.Module):
    components: AbstractJointGaussian
