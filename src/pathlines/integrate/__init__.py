"""Depth as time: layers, flows, ensembles, certificates."""

from pathlines.integrate.chain import chain as chain
from pathlines.integrate.cluster_flow import cluster_flow as cluster_flow
from pathlines.integrate.coarsen import coarsen as coarsen
from pathlines.integrate.ensemble import ensemble as ensemble
from pathlines.integrate.flow import flow as flow
from pathlines.integrate.forms import Form as Form
from pathlines.integrate.forms import choose_form as choose_form
from pathlines.integrate.gaussian_fate import Fate as Fate
from pathlines.integrate.gaussian_fate import fates as fates
from pathlines.integrate.head_tree import expectation_over_heads as expectation_over_heads
from pathlines.integrate.layers import layers as layers
from pathlines.integrate.methods import METHODS as METHODS
from pathlines.integrate.run import Certificate as Certificate
from pathlines.integrate.run import Run as Run
from pathlines.integrate.side_by_side import side_by_side as side_by_side
from pathlines.integrate.traced import TracedRun as TracedRun
