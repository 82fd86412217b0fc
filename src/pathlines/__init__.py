"""Simulate, predict and verify what depth does to tokens.

Here are the names of ten-line scripts and every observable; everything else has its place in a room
(``pl.limit.homogenized.overlap_curve``). All are found without being imported and loaded on first use, so that
``import pathlines`` is instant and does not import JAX. ``pathlines.enable_float64()`` is the one global switch, and it
is yours to make. (Where the installed compiler is known to be wrong, importing also tells it to be right:
``foundation/compiler.py``.)
"""

from importlib.metadata import version as _version

from pathlines.foundation.compiler import avoid_wrong_fusions as _avoid_wrong_fusions
from pathlines.foundation.namespace import entries as _entries
from pathlines.foundation.namespace import namespace as _namespace

__version__ = _version("pathlines")

_avoid_wrong_fusions()

_TOP = {
    "domain.euclidean": "Euclidean",
    "domain.sphere": "Sphere",
    "model.base": "MODELS Model",
    "model.self_attention": "SelfAttention",
    "model.homogenized.random_transformer": "RandomTransformer",
    "model.followups.dual_filter": "DualFilter",
    "numerics.sources": "HiddenMarkov StateSpace",
    "transport.proximal_sampler": "ProximalSampler",
    "weights.gaussian": "GaussianHeads",
    "integrate.flow": "flow",
    "integrate.layers": "layers",
    "integrate.chain": "chain",
    "integrate.ensemble": "ensemble",
    "integrate.retrieval": "retrieval",
    "integrate.run": "Run",
    "integrate.observe": "OBSERVABLES",
    "transport.schedule": "read_schedule",
    "transport.euclid.schedule": "EuclideanSchedule",
    "transport.euclid.transport1d": "Transport1D",
    "transport.euclid.triangular": "TriangularFlow",
    "transport.euclid.ridge": "RidgeFlow",
    "transport.euclid.diffeo": "DiffeoFlow",
    "transport.euclid.maurey": "MaureyFlow",
    "transport.sphere.interpolate": "MeasureInterpolator",
    "transport.verifier": "verify_schedule",
    "store.runs": "open_run save_run",
    "sweep.phase": "phase_diagram",
    "sweep.study": "study",
    "sweep.asymptotics": "asymptotics",
    "sweep.verify": "verify",
    "architecture.read": "read_architecture",
    "limit.architecture.predict": "predict",
    "advice.advice": "advise",
    "probing.examine": "probe",
    "claim.base": "CLAIMS",
    "claim.evaluate": "evaluate",
    "draw.gallery": "FIGURES",
    "draw.plot": "plot",
    "draw.compare": "compare",
    "view.export": "export_page",
    "foundation.papers.shelf": "PAPERS",
    "foundation.precision": "enable_float64",
    "foundation.kept_programs": "keep_programs",
    "limit.homogenized.regimes": "regime",
    "limit.reductions": "gram simplex",
    "model.homogenized.homogenize": "homogenize",
    "model.gaussian.closure": "gaussian_closure",
    "model.mean_field": "mean_field",
}
"""File → names of the top tier that it defines. What fewer scripts need stays in its room."""


def _names() -> dict[str, str]:
    """Name → file (and its name there, where that differs)."""
    top = {name: f"pathlines.{file}" for file, names in _TOP.items() for name in names.split()}
    return top | {"tokens": "pathlines.integrate.observe:positions"} | _entries("pathlines.observable", "observable")


_namespace(__name__, _names)
