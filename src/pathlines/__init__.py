"""Simulate, predict and verify what depth does to tokens.

The public names are listed here and loaded on first use, so that ``import pathlines`` is instant and does not import
JAX. ``pathlines.enable_float64()`` is the one global switch, and it is yours to make. (Where the installed compiler is
known to be wrong, importing also tells it to be right: ``foundation/compiler.py``.)
"""

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

from pathlines.foundation.compiler import avoid_wrong_fusions

if TYPE_CHECKING:
    from pathlines.attention import AffineAttention as AffineAttention
    from pathlines.attention import HardmaxAttention as HardmaxAttention
    from pathlines.attention import L2Attention as L2Attention
    from pathlines.attention import LinearAttention as LinearAttention
    from pathlines.attention import SigmoidAttention as SigmoidAttention
    from pathlines.attention import SinkhornAttention as SinkhornAttention
    from pathlines.attention import SoftmaxAttention as SoftmaxAttention
    from pathlines.attention import UnnormalisedAttention as UnnormalisedAttention
    from pathlines.claim import CLAIMS as CLAIMS
    from pathlines.claim import evaluate as evaluate
    from pathlines.domain import Euclidean as Euclidean
    from pathlines.domain import Sphere as Sphere
    from pathlines.domain.circle_law import density_moments as density_moments
    from pathlines.domain.circle_law import quiet_start as quiet_start
    from pathlines.draw import ANIMATIONS as ANIMATIONS
    from pathlines.draw import FIGURES as FIGURES
    from pathlines.draw import plot as plot
    from pathlines.foundation.papers import PAPERS as PAPERS
    from pathlines.foundation.precision import enable_float64 as enable_float64
    from pathlines.integrate import METHODS as METHODS
    from pathlines.integrate import Run as Run
    from pathlines.integrate import chain as chain
    from pathlines.integrate import cluster_flow as cluster_flow
    from pathlines.integrate import coarsen as coarsen
    from pathlines.integrate import ensemble as ensemble
    from pathlines.integrate import expectation_over_heads as expectation_over_heads
    from pathlines.integrate import fates as fates
    from pathlines.integrate import flow as flow
    from pathlines.integrate import layers as layers
    from pathlines.integrate.coupling import coupled_chains as coupled_chains
    from pathlines.integrate.coupling import synchronous_coupling as synchronous_coupling
    from pathlines.limit.gaussian.context import closure_horizon as closure_horizon
    from pathlines.limit.gaussian.context import critical_time as critical_time
    from pathlines.limit.gaussian.context import entropy_deficit as entropy_deficit
    from pathlines.limit.gaussian.context import error_prefactor as error_prefactor
    from pathlines.limit.homogenized.collapse import collapse_depth as collapse_depth
    from pathlines.limit.homogenized.collapse import collapse_map as collapse_map
    from pathlines.limit.homogenized.collapse import collapse_time as collapse_time
    from pathlines.limit.homogenized.collapse import sensitivities as sensitivities
    from pathlines.limit.homogenized.cubature import sde_expectation as sde_expectation
    from pathlines.limit.homogenized.finite_law import FiniteLawSDE as FiniteLawSDE
    from pathlines.limit.homogenized.fokker_planck import mode_covariances as mode_covariances
    from pathlines.limit.homogenized.fokker_planck import mode_rates as mode_rates
    from pathlines.limit.homogenized.gram import gram_flow as gram_flow
    from pathlines.limit.homogenized.gram import gram_layers as gram_layers
    from pathlines.limit.homogenized.logistic import logistic_mass as logistic_mass
    from pathlines.limit.homogenized.low_temperature import pair_kernel as pair_kernel
    from pathlines.limit.homogenized.noise_covariance import noise_covariance as noise_covariance
    from pathlines.limit.homogenized.overlap_curve import layer_map_curve as layer_map_curve
    from pathlines.limit.homogenized.overlap_curve import overlap_curve as overlap_curve
    from pathlines.limit.homogenized.parameters import HomogenizedParameters as HomogenizedParameters
    from pathlines.limit.homogenized.participation import participation as participation
    from pathlines.limit.homogenized.regimes import asymptotic_regime as asymptotic_regime
    from pathlines.limit.homogenized.regimes import regime as regime
    from pathlines.limit.homogenized.scheme_tree import scheme_expectation as scheme_expectation
    from pathlines.limit.homogenized.uniform_attention import uniform_attention as uniform_attention
    from pathlines.limit.metastability.caps import cap_certificate as cap_certificate
    from pathlines.limit.metastability.forecast import forecast as forecast
    from pathlines.limit.metastability.growth import dominant_degree as dominant_degree
    from pathlines.limit.metastability.growth import formation_time as formation_time
    from pathlines.limit.metastability.growth import growth_rates as growth_rates
    from pathlines.limit.metastability.growth import selection_probabilities as selection_probabilities
    from pathlines.limit.metastability.kde_modes import two_sample_modes as two_sample_modes
    from pathlines.limit.metastability.merging import log_merging_time as log_merging_time
    from pathlines.limit.metastability.perceptron_landscape import perceptron_landscape as perceptron_landscape
    from pathlines.limit.metastability.perceptron_minimiser import perceptron_minimiser as perceptron_minimiser
    from pathlines.limit.metastability.perceptron_potential import perceptron_potential as perceptron_potential
    from pathlines.limit.metastability.slow_laws import polygon_rates as polygon_rates
    from pathlines.model import MODELS as MODELS
    from pathlines.model import CircleAttention as CircleAttention
    from pathlines.model import CircleDensity as CircleDensity
    from pathlines.model import CircleMeasure as CircleMeasure
    from pathlines.model import FrozenExponentAttention as FrozenExponentAttention
    from pathlines.model import HomogenizedODE as HomogenizedODE
    from pathlines.model import HomogenizedSDE as HomogenizedSDE
    from pathlines.model import L2Gaussian as L2Gaussian
    from pathlines.model import LinearGaussian as LinearGaussian
    from pathlines.model import LogisticPair as LogisticPair
    from pathlines.model import LowTemperaturePair as LowTemperaturePair
    from pathlines.model import MaskedLinearGaussian as MaskedLinearGaussian
    from pathlines.model import NormalisedAttention as NormalisedAttention
    from pathlines.model import Perceptron as Perceptron
    from pathlines.model import PerceptronLandscape as PerceptronLandscape
    from pathlines.model import RandomArchitecture as RandomArchitecture
    from pathlines.model import RandomBlock as RandomBlock
    from pathlines.model import RandomEncoder as RandomEncoder
    from pathlines.model import RandomPerceptron as RandomPerceptron
    from pathlines.model import RandomTransformer as RandomTransformer
    from pathlines.model import RescaledAttention as RescaledAttention
    from pathlines.model import SelfAttention as SelfAttention
    from pathlines.model import SinkhornGaussian as SinkhornGaussian
    from pathlines.model import SoftmaxGaussian as SoftmaxGaussian
    from pathlines.model import TransportedMeasure as TransportedMeasure
    from pathlines.model import ZonalMeasure as ZonalMeasure
    from pathlines.model.gaussian.closure import gaussian_closure as gaussian_closure
    from pathlines.model.gaussian.closure import sigma_points as sigma_points
    from pathlines.model.gaussian.moments import SigmoidGaussian as SigmoidGaussian
    from pathlines.model.gaussian.moments import UnnormalisedGaussian as UnnormalisedGaussian
    from pathlines.model.metastability.zonal_start import zonal_start as zonal_start
    from pathlines.numerics.quadrature import WeightedNodes as WeightedNodes
    from pathlines.numerics.quadrature import gauss_hermite as gauss_hermite
    from pathlines.numerics.quadrature import gauss_legendre as gauss_legendre
    from pathlines.numerics.quadrature import trapezoid as trapezoid
    from pathlines.observable import OBSERVABLES as OBSERVABLES
    from pathlines.observable.distances import bures as bures
    from pathlines.observable.distances import circle_distance as circle_distance
    from pathlines.observable.distances import cloud_distance as cloud_distance
    from pathlines.observable.distances import conditional_distance as conditional_distance
    from pathlines.observable.distances import coupling_error as coupling_error
    from pathlines.observable.distances import gaussian_distance as gaussian_distance
    from pathlines.observable.distances import gelbrich as gelbrich
    from pathlines.observable.distances import line_to_gaussian as line_to_gaussian
    from pathlines.observable.kde_modes import count_modes as count_modes
    from pathlines.observable.kde_modes import mode_positions as mode_positions
    from pathlines.observable.kde_modes import normal_modes as normal_modes
    from pathlines.store import open_run as open_run
    from pathlines.store import save_run as save_run
    from pathlines.sweep import phase_diagram as phase_diagram
    from pathlines.weights import FixedWeights as FixedWeights
    from pathlines.weights import GaussianHeads as GaussianHeads
    from pathlines.weights import IdentityWeights as IdentityWeights
    from pathlines.weights import MixtureHeads as MixtureHeads
    from pathlines.weights import PiecewiseWeights as PiecewiseWeights
    from pathlines.weights import VaryingWeights as VaryingWeights

__version__ = _version("pathlines")

avoid_wrong_fusions()

_ROOMS = {
    "attention": (
        "L2Attention",
        "AffineAttention",
        "HardmaxAttention",
        "LinearAttention",
        "SigmoidAttention",
        "SinkhornAttention",
        "SoftmaxAttention",
        "UnnormalisedAttention",
    ),
    "claim": ("CLAIMS", "evaluate"),
    "domain": ("Euclidean", "Sphere"),
    "domain.circle_law": ("density_moments", "quiet_start"),
    "numerics.quadrature": ("WeightedNodes", "gauss_hermite", "gauss_legendre", "trapezoid"),
    "draw": ("ANIMATIONS", "FIGURES", "plot"),
    "foundation.papers": ("PAPERS",),
    "foundation.precision": ("enable_float64",),
    "integrate": (
        "METHODS",
        "Run",
        "chain",
        "cluster_flow",
        "coarsen",
        "ensemble",
        "expectation_over_heads",
        "fates",
        "flow",
        "layers",
    ),
    "integrate.coupling": ("coupled_chains", "synchronous_coupling"),
    "limit.gaussian.context": ("critical_time", "entropy_deficit", "error_prefactor", "closure_horizon"),
    "limit.homogenized.collapse": ("collapse_depth", "collapse_map", "collapse_time", "sensitivities"),
    "limit.homogenized.cubature": ("sde_expectation",),
    "limit.homogenized.finite_law": ("FiniteLawSDE",),
    "limit.homogenized.fokker_planck": ("mode_covariances", "mode_rates"),
    "limit.homogenized.gram": ("gram_flow", "gram_layers"),
    "limit.homogenized.logistic": ("logistic_mass",),
    "limit.homogenized.low_temperature": ("pair_kernel",),
    "limit.homogenized.noise_covariance": ("noise_covariance",),
    "limit.homogenized.overlap_curve": ("layer_map_curve", "overlap_curve"),
    "limit.homogenized.parameters": ("HomogenizedParameters",),
    "limit.homogenized.participation": ("participation",),
    "limit.homogenized.regimes": ("asymptotic_regime", "regime"),
    "limit.homogenized.scheme_tree": ("scheme_expectation",),
    "limit.homogenized.uniform_attention": ("uniform_attention",),
    "limit.metastability.caps": ("cap_certificate",),
    "limit.metastability.forecast": ("forecast",),
    "limit.metastability.growth": ("dominant_degree", "formation_time", "growth_rates", "selection_probabilities"),
    "limit.metastability.kde_modes": ("two_sample_modes",),
    "limit.metastability.merging": ("log_merging_time",),
    "limit.metastability.perceptron_landscape": ("perceptron_landscape",),
    "limit.metastability.perceptron_minimiser": ("perceptron_minimiser",),
    "limit.metastability.perceptron_potential": ("perceptron_potential",),
    "limit.metastability.slow_laws": ("polygon_rates",),
    "model": (
        "MODELS",
        "CircleAttention",
        "CircleDensity",
        "CircleMeasure",
        "FrozenExponentAttention",
        "HomogenizedODE",
        "HomogenizedSDE",
        "L2Gaussian",
        "LinearGaussian",
        "LogisticPair",
        "LowTemperaturePair",
        "MaskedLinearGaussian",
        "NormalisedAttention",
        "Perceptron",
        "PerceptronLandscape",
        "RandomArchitecture",
        "RandomBlock",
        "RandomEncoder",
        "RandomPerceptron",
        "RandomTransformer",
        "RescaledAttention",
        "SelfAttention",
        "SinkhornGaussian",
        "SoftmaxGaussian",
        "TransportedMeasure",
        "ZonalMeasure",
    ),
    "model.gaussian.closure": ("gaussian_closure", "sigma_points"),
    "model.gaussian.moments": ("SigmoidGaussian", "UnnormalisedGaussian"),
    "model.metastability.zonal_start": ("zonal_start",),
    "observable": ("OBSERVABLES",),
    "observable.distances": (
        "bures",
        "circle_distance",
        "cloud_distance",
        "conditional_distance",
        "coupling_error",
        "gaussian_distance",
        "gelbrich",
        "line_to_gaussian",
    ),
    "observable.kde_modes": ("count_modes", "mode_positions", "normal_modes"),
    "store": ("open_run", "save_run"),
    "sweep": ("phase_diagram",),
    "weights": (
        "FixedWeights",
        "GaussianHeads",
        "IdentityWeights",
        "MixtureHeads",
        "PiecewiseWeights",
        "VaryingWeights",
    ),
}
_WHERE = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = ["__version__", *sorted(_WHERE)]


def __getattr__(name: str) -> Any:
    """Load a public name, or an observable of that name, from its room."""
    if name in _WHERE:
        return getattr(import_module(f"pathlines.{_WHERE[name]}"), name)
    if not name.startswith("_"):
        observables = import_module("pathlines.observable").OBSERVABLES
        if name in list(observables):
            return observables[name]
    raise AttributeError(f"module 'pathlines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
