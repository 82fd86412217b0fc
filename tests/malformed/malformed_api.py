"""Malformed calls of public names, made from one good call each: one argument is spoilt at a time.

Names of the top tier are all there, and many of the rooms. What an argument may be is read off its annotation and the
good value; what is spoilt is never a value that somebody could mean. Results that only the package makes and base
classes (``RECORDS``) are not called.
"""

import inspect
import math
from functools import cache, partial
from importlib import import_module

import jax
import numpy as np
import xarray as xr

import pathlines as pl
from pathlines.architecture import from_numbers
from pathlines.foundation.namespace import found_below
from pathlines.limit.homogenized.attended import uniform_attended

RECORDS = {"Model", "Run"}
NO_ARGUMENTS = {"enable_float64", "keep_programs"}
KEY = jax.random.key(0)
SIX = [8, 2, 2, 16, 32, 0.02]
ON_CIRCLE = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
EYE = np.eye(2)
LINE = np.array([0.0, 0.5, 2.0])


@cache
def good_calls():
    """A good call of each public name that can be called: arguments by name."""
    sa, chain, softmax = pl.SelfAttention(2.0), pl.RandomTransformer(3), pl.attention.SoftmaxAttention()
    finite_chain = pl.RandomTransformer(law=pl.weights.MixtureHeads(EYE[None], EYE[None]), beta=1.0)
    law, gaussian = pl.GaussianHeads(2), {"value": EYE, "query": EYE, "key": EYE, "scale": 1.0}
    matrices = {"A": 0.1 * EYE, "V": EYE, "cov": EYE}
    potential = pl.limit.metastability.perceptron_potential(ON_CIRCLE, np.array([1.0, -1.0, 0.5]))
    bowl = pl.model.followups.QuadraticPotential(EYE)
    plain, nodes = pl.weights.IdentityWeights(), pl.numerics.WeightedNodes(ON_CIRCLE, np.full(3, 1 / 3))
    land = pl.limit.metastability.perceptron_landscape(potential, 4.0)
    finite = {"values": EYE[None], "scores": EYE[None], "probabilities": np.ones(1), "beta": 1.0, "step": 0.1}
    normal = {"mean": np.zeros(2), "covariance": EYE}
    collapse = {"n": 8, "b": 1.0, "level": 0.5, "p": math.inf, "d": 16.0, "gamma0": 0.0}
    sde = pl.limit.homogenized.FiniteLawSDE(**finite)
    fall = xr.Dataset({"y": ("n", [1.5, 1.25, 1.125])}, {"n": [2, 4, 8]})
    tree = {"sde": sde, "start": ON_CIRCLE, "until": 0.1, "function": np.sum}
    return {
        "CircleAttention": {"beta": 4.0, "multiplicities": np.ones(3), "shift": 0.0},
        "CircleDensity": {"beta": 9.0, "degree": 16, "nodes": 40, "shift": 0.0},
        "CircleMeasure": {"chain": pl.RandomTransformer(2), "cells": 32},
        "DualFilter": {"source": pl.StateSpace(EYE, EYE, EYE, EYE), "layers": 2, "step": 0.1},
        "Euclidean": {"dim": 3},
        "EuclideanSchedule": {"w": EYE, "a": EYE, "b": np.ones(2), "t": np.ones(2)},
        "FiniteLawSDE": {**finite, "heads": 1, "corrector": "full", "update": "ambient"},
        "FixedWeights": {"value": EYE, "query": EYE, "key": EYE},
        "FrozenExponentAttention": {"value": EYE, "beta": 1.0, "query": EYE, "key": EYE, "attention": softmax},
        "GaussianHeads": {"d": 2, "sigma_v": 1.0, "sigma_a": 1.0, "value_mean": EYE, "score_mean": EYE},
        "HiddenMarkov": {"kernel": EYE, "emission": EYE, "start": np.array([1.0, 0.0])},
        "HomogenizedODE": {"law": law, "beta": 1.0, "step": 0.1, "heads": 1, "multiplicities": np.ones(3)},
        "HomogenizedSDE": {"law": law, "beta": 1.0, "step": 0.1, "time_step": 0.1, "method": "split"},
        "IdentityWeights": {"value": 1.0},
        "L2Gaussian": gaussian,
        "LinearGaussian": {**gaussian, "offset": 0.0},
        "LogisticPair": {"kappa": 2.0, "time_step": 0.01},
        "LowTemperaturePair": {"d": 4, "step": 0.3, "heads": 1, "sigma_v": 1.0},
        "MaskedLinearGaussian": {**gaussian, "blocks": LINE, "shares": np.ones(3), "reduce": "sum"},
        "MeasureInterpolator": {"method": "auto", "error": 1e-6, "pieces": 9, "grouping": "exact", "seed": 0},
        "MixtureHeads": {"values": EYE[None], "scores": EYE[None], "probabilities": np.ones(1)},
        "NormalisedAttention": {"beta": 1.0, "scheme": "post", "attention": softmax, "weights": plain},
        "Perceptron": {"outer": EYE, "inner": EYE, "bias": np.zeros(2), "activation": "relu"},
        "PerceptronLandscape": {"beta": 1.0, "directions": ON_CIRCLE, "strengths": np.ones(3), "kind": "usa"},
        "PiecewiseWeights": {"switches": np.array([1.0]), "value": np.stack([EYE, EYE])},
        "RandomArchitecture": {"architecture": from_numbers(SIX).architecture},
        "RandomBlock": {"attention": chain, "perceptron": pl.model.homogenized.RandomPerceptron()},
        "RandomEncoder": {"d": 8, "heads": 2, "placement": "post", "residual": 1.0, "logit": 1.0, "activation": "erf"},
        "RandomPerceptron": {"activation": "relu", "sigma_w": 1.0, "strength": 1.0, "width": 4, "time_step": 1.0},
        "RandomTransformer": {"d": 3, "heads": 1, "step": 0.3, "beta": 1.0, "sigma_v": 1.0, "update": "ambient"},
        "RescaledAttention": {"value": EYE, "query": EYE, "key": EYE, "beta": 1.0},
        "StateSpace": {
            "transition": EYE, "readout": EYE, "moves": EYE, "noise": EYE, "spread": EYE, "mean": np.zeros(2),
        },
        "SynchronisingPair": {
            "activation": "tanh", "sigma_w": 1.0, "sigma_b": 0.5, "width": 4, "attention": 1.0, "beta": 1.0,
            "time_step": 0.01, "dimension": 3,
        },
        "ResidualHeads": {
            "mean_score": EYE, "mean_value": EYE, "depth": 2, "heads": 2, "sigma_b": 0.5, "sigma_v": 0.5, "until": 1.0,
        },
        "SelfAttention": {
            "beta": 2.0, "attention": softmax, "weights": pl.weights.IdentityWeights(), "perceptron": None,
            "multiplicities": np.ones(3), "space": "sphere", "summation": "auto", "mask": "causal",
            "frozen": 1,
        },
        "SigmoidAttention": {"bias": 0.0},
        "SigmoidGaussian": {**gaussian, "bias": 0.0},
        "SinkhornAttention": {"eps": 1.0, "prefactor": "1/eps", "iterations": 5, "tolerance": 1e-9},
        "SinkhornGaussian": {**gaussian, "eps": 1.0, "prefactor": "1/eps"},
        "SoftmaxGaussian": gaussian,
        "ProximalAttention": {"potential": bowl, "d": 2, "regularisation": 0.2, "beta": 1.0, "preconditioner": EYE},
        "ProximalSampler": {
            "potential": bowl, "dim": 2, "regularisation": 0.2, "step": 0.1, "beta": 1.0, "preconditioner": EYE,
            "normaliser": "closed", "nodes": None,
        },
        "QuadraticPotential": {"precision": EYE, "centre": np.zeros(2)},
        "Sphere": {"dim": 3},
        "SphereSchedule": {"d": 3},
        "Transport1D": {},
        "DiffeoFlow": {},
        "MaureyFlow": {},
        "RidgeFlow": {},
        "TransportedMeasure": {"chain": chain},
        "TriangularFlow": {},
        "UnnormalisedAttention": {"shift": 0.0},
        "UnnormalisedGaussian": gaussian,
        "WideShallow": {"inputs": EYE, "targets": EYE, "features": "tanh", "multiplicities": np.ones(3)},
        "ZonalMeasure": {"d": 3, "beta": 9.0, "nodes": 40, "shift": 0.0},
        "advise": {"architecture": SIX, "tokens": 4, "what_if": False},
        "asymptotic_regime": {"a": 1.0, "c": 1.0},
        "bures": {"one": EYE, "other": EYE},
        "cap_certificate": {"tokens": ON_CIRCLE, "beta": 5.0},
        "chain": {"model": chain, "start": np.eye(3), "depth": 2, "key": KEY, "runs": 2, "every": 1, "memory": 1e9},
        "circle_distance": {"one": LINE, "other": LINE},
        "gaussian_closure": {"model": "softmax", "value": EYE, "query": EYE, "key": EYE},
        "cloud_distance": {
            "one": ON_CIRCLE, "other": ON_CIRCLE, "p": 2, "directions": 8, "seed": 0, "masses": np.full(3, 1 / 3),
            "other_masses": np.full(3, 1 / 3), "metric": "line",
        },
        "cluster_flow": {"positions": LINE, "beta": 9.0, "masses": np.full(3, 1 / 3), "delta": 0.01, "rtol": 1e-8},
        "coarsen": {"model": pl.SelfAttention(9.0), "tokens": ON_CIRCLE, "until": 10.0, "delta": 0.01, "rtol": 1e-8},
        "collapse_depth": {**collapse, "v": 0.1, "norm": "post", "r0": 1.0, "max_layers": 100},
        "collapse_map": {**{k: v for k, v in collapse.items() if k not in "nb"}, "ns": [8], "bs": [1.0]},
        "collapse_time": collapse,
        "compare": {"subject": None, "theory": None, "observable": "mean_overlap"},
        "conditional_distance": {"positions": LINE, "one": ON_CIRCLE, "other": ON_CIRCLE, "p": 2},
        "count_modes": {"samples": LINE, "beta": 2.0},
        "context": {"query_norm": 1.0, "error": 0.1, "d": 3},
        "coupled_chains": {"models": [chain, chain], "starts": [np.eye(3), np.eye(3)], "key": KEY, "depth": 1},
        "coupling_error": {"one": ON_CIRCLE, "other": ON_CIRCLE, "masses": np.full(3, 1 / 3)},
        "critical_time": {**matrices, "until": 1.0},
        "density_moments": {"amplitudes": {1: 0.1}, "modes": 4},
        "dominant_degree": {"beta": 9.0, "d": 2},
        "ensemble": {
            "model": sa, "law": lambda key: pl.Sphere(3).sines(4), "runs": 2, "key": KEY, "until": 0.1,
            "over": {"beta": [1.0]}, "method": "rk45", "rtol": 1e-6, "memory": 1e9, "max_steps": 100,
        },
        "entropy_deficit": {"A": 0.1 * EYE, "mean": np.zeros(2), "cov": EYE},
        "error_prefactor": matrices,
        "evaluate": {"claim": pl.CLAIMS["clustering/CL-43"], "size": "quick", "changes": {"n1": 4}},
        "expectation_over_heads": {"model": finite_chain, "start": EYE, "depth": 1, "function": np.sum, "nodes": 2},
        "fates": {"models": pl.model.gaussian.SoftmaxGaussian(EYE), "factors": EYE, "until": 10.0, "rtol": 1e-6},
        "flow": {
            "model": sa, "tokens": np.eye(3), "until": 0.1, "record": ["mean_overlap"], "accumulate": ["mean_overlap"],
            "method": "rk45", "rtol": 1e-6, "atol": 1e-6, "form": "auto", "max_steps": 100,
        },
        "forecast": {"beta": 9.0, "d": 2, "tokens": 1e4, "level": 0.1},
        "formation_time": {"beta": 9.0, "d": 2, "tokens": 1e4, "amplitude": 0.1, "kind": "sa"},
        "gauss_hermite": {**normal, "order": 3, "drop": 0.0},
        "gauss_legendre": {"low": np.zeros(2), "high": np.ones(2), "order": 3},
        "gaussian_distance": {**normal, "other_mean": np.zeros(2), "other_covariance": EYE},
        "gelbrich": {"tokens": ON_CIRCLE, **normal, "masses": np.full(3, 1 / 3)},
        "generic_ends": {"value": EYE, "beta": 1.0, "n": 2, "starts": 2, "until": 1.0},
        "gram_flow": {"gram": np.eye(3), "attended": uniform_attended, "times": [1.0], "d": 8.0, "tolerance": 1e-8},
        "gram_layers": {"gram": np.eye(3), "attended": uniform_attended, "layers": 2, "v": 0.1, "d": 8.0},
        "gram": {"net": chain, "start": np.eye(3), "samples": 16, "seed": 0},
        "growth_rates": {"beta": 9.0, "d": 2, "count": 4, "kind": "sa"},
        "perceptron_landscape": {"potential": potential, "beta": 4.0, "kernel": "scaled"},
        "homogenize": {"net": chain, "corrector": "full", "time_step": 0.1},
        "layer_map_curve": {"layers": 4, "n": 8, "b": 1.0, "v": 0.1, "d": 16.0, "norm": "post", "r0": 1.0},
        "layers": {"model": sa, "tokens": np.eye(3), "depth": 2, "step": 0.1, "record": ["mean_overlap"], "every": 1},
        "line_to_gaussian": {"points": LINE, "mean": 0.0, "deviation": 1.0, "p": 1, "masses": np.full(3, 1 / 3)},
        "log_merging_time": {"beta": 9.0, "start": 1.0, "end": 0.1, "kind": "usa", "masses": (0.5, 0.5)},
        "logistic_mass": {"times": LINE, "mass0": 0.5},
        "perceptron_minimiser": {"land": land, "tolerance": 1e-8, "points": 50, "most": 20},
        "mean_field": {"model": sa, "d": 2},
        "mode_atlas": {"value": EYE, "beta": 1.0, "n": 3},
        "mode_covariances": {"angles": LINE, "logit_scale": 1.0, "largest": 3},
        "mode_positions": {"samples": LINE, "beta": 2.0},
        "mode_rates": {"angles": LINE, "logit_scale": 1.0, "largest": 3},
        "noise_covariance": {"tokens": ON_CIRCLE, "beta": 1.0, "sigma_v": 1.0, "nodes": 8, "degree": 6},
        "normal_modes": {"n": 8, "beta": 2.0, "runs": 2, "seed": 0},
        "open_run": {"path": "run.nc"},
        "overlap_curve": {"times": LINE, "n": 8, "b": 1.0, "d": 16.0, "p": math.inf, "gamma0": 0.0},
        "pair_kernel": {"overlap": 0.5, "d": 4, "qk_dim": 2.0},
        "mean_participation": {"n": 8, "b": 1.0, "gamma": 0.5, "p": math.inf},
        "perceptron_potential": {"directions": ON_CIRCLE, "strengths": np.ones(3), "biases": np.zeros(3)},
        "asymptotics": {"study": fall, "along": "n", "variable": "y", "tolerance": 0.05, "seed": 0},
        "study": {"target": "sa", "axes": {"beta": [1.0]}, "repeat": 1, "record": "mean_overlap", "times": [0.1]},
        "phase_diagram": {"d": 3, "betas": [1.0], "times": [0.1], "samples": 2, "n": 4, "delta": 1e-3, "rtol": 1e-4},
        "export_page": {"run": None, "path": "run.html"},
        "plot": {"run": None},
        "polygon_rates": {"k": 3, "beta": 9.0, "kind": "sa"},
        "predict": {"architecture": SIX, "tokens": 4, "layers": 2, "spread": False},
        "probe": {"model": "no-such-folder", "seeds": 2, "max_tokens": 8},
        "quiet_start": {"tokens": 1e4, "n": 8, "key": KEY, "modes": 3},
        "read_architecture": {"path": "config.json"},
        "read_schedule": {"path": "flow.json"},
        "retrieval": {
            "model": pl.model.causal.CausalDecoder(1.0, 2.0), "n": 4, "depth": 0.5, "key": KEY, "prompts": 4,
            "vocabulary": 4, "decoder": "soft", "mode": 1, "d": 3, "layers": 2, "estimator": "adjoint", "memory": 1e8,
        },
        "regime": {"eta": 0.1, "alpha": 0.1, "layers": 100, "epsilon": 0.1, "bound": 10.0},
        "save_run": {"run": None, "path": "run.nc"},
        "scheme_expectation": {**tree, "steps": 1, "method": "split"},
        "sde_expectation": {**tree, "steps": [1, 2]},
        "selection_probabilities": {"beta": 9.0, "tokens": 1e4, "amplitude": 0.1, "count": 6},
        "sensitivities": collapse,
        "simplex": {"net": chain, "n": 3, "overlap": 0.0},
        "sigma_points": normal,
        "sinkhorn_divergence": {"one": ON_CIRCLE, "other": ON_CIRCLE, "eps": 1.0, "metric": "line"},
        "synchronous_coupling": {
            "model": sa, "mean_field": lambda multiplicities: sa, "law": nodes,
            "samples": ON_CIRCLE[None], "times": [0.1],
        },
        "synchronisation": {
            "activation": "tanh", "d": 5, "sigma_w": 1.0, "sigma_b": 0.5, "attention": 1.0, "beta": 1.0,
        },
        "trapezoid": {**normal, "step": 0.5, "reach": 2.0, "drop": 0.0},
        "closure_horizon": {**matrices, "n": 10, "tolerance": 0.1},
        "two_sample_modes": {"beta": 2.0},
        "uniform_attention": {"d": 4, "beta": 1.0, "sigma_a": 1.0},
        "verify_schedule": {"schedule": "flow.json", "inputs": [EYE], "targets": [EYE], "rtol": 1e-9},
        "verify": {"pattern": "clustering/CL-43", "full": False},
        "zonal_start": {"moments": {1: 0.1}, "n": 8, "d": 3},
    }  # fmt: skip


UNBOUNDED = {
    "p", "d", "qk_dim", "b", "logit_scale", "log_start", "shift", "until", "atol", "memory", "layers", "mass0", "kappa",
    "bound",
}  # fmt: skip
"""Arguments for which infinity has a meaning, or only says that there is no limit."""
OF_EITHER_SIGN = {
    "shift", "bias", "offset", "log_start", "value", "seed", "mean", "value_mean", "score_mean", "a", "c", "scale",
    "mass0", "alpha", "overlap", "gamma0", "gamma", "angles", "logit", "residual", "kappa",
}  # fmt: skip
"""Numbers that may be negative."""


SYMMETRIC = {
    (n, "beta") for n in ("FiniteLawSDE", "HomogenizedODE", "HomogenizedSDE", "RandomTransformer", "noise_covariance")
}
"""Temperatures of random heads, whose law does not know signs or knows them by its own matrices."""


IDS_OR_NUMBER = {("advise", "tokens"), ("predict", "tokens")}
"""Arguments that are a number or a list of them."""


ELEMENTWISE = {"logistic_mass", "overlap_curve", "pair_kernel", "two_sample_modes"}
"""Functions of arrays of any shape, empty ones too."""


def spoilt(name, annotation, default, good):
    """Values that nobody can mean for an argument."""
    optional = default is None or "None" in annotation
    nothing = [] if optional else [None]
    if isinstance(good, str):
        return ["no-such-name", "", 7, *nothing]
    if isinstance(good, bool):
        return []
    if isinstance(good, int) and not annotation.startswith("float"):
        few = [] if name in OF_EITHER_SIGN else [-1]
        return ["9", 1.5, math.nan, [2, 3], object(), "many", *few, *nothing]
    if isinstance(good, (int, float)):
        signs = [] if name in OF_EITHER_SIGN else [-1.0, -math.inf]
        return ["9", "many", math.nan, object(), 1j, *([] if name in UNBOUNDED else [math.inf]), *signs, *nothing]
    if isinstance(good, np.ndarray) or (
        isinstance(good, (list, tuple)) and not isinstance(good[0], np.ndarray | pl.RandomTransformer)
    ):
        return [*spoilt_arrays(good), *nothing]
    if callable(good) and not isinstance(good, type):
        return [5, "abc", *nothing]
    return [5, "abc", object(), [1.5], *nothing]


def spoilt_arrays(good):
    """Arrays like ``good`` that are not numbers, not finite, ragged, empty or of a strange rank."""
    if len(good) and isinstance(good[0], str):
        return [["no-such-name"], [5], 5, "no-such-name"]
    array = np.asarray(good)
    holed = np.array(array, float)
    holed.flat[0] = math.nan
    endless = np.array(array, float)
    endless.flat[-1] = -math.inf
    rows = array.ndim + 3
    return [
        "abc",
        [[1.0, 2.0], [3.0]],
        holed,
        endless,
        np.ones((2,) * rows),
        np.empty((0, *array.shape[1:])),
        array.astype(str),
        np.array([object()]),
        array * 1j,
        {},
    ]


def public(name):
    """What has that name at the top, or in the one room that has it."""
    if name in pl.__all__:
        return getattr(pl, name)
    (path,) = found_below("pathlines", name)
    return getattr(import_module(path.rpartition(".")[0]), name)


CLOUD = np.random.default_rng(0).normal(size=(60, 2))
FITTED = {
    "Transport1D": ({"pieces": 12}, {"error": 0.9}),
    "TriangularFlow": ({"bins": 4, "knots": 4}, {"pieces": 200}, {"error": 0.9}),
    "RidgeFlow": ({"layers": 2, "knots": 4, "seed": 0, "finetune": 0}, {"pieces": 60}, {"error": 0.9}),
}
"""Estimators check their parameters when they are fitted, as scikit-learn asks for."""


def fit_calls():
    """(what, call) for estimators with spoilt parameters, and with spoilt samples."""
    for name, settings in FITTED.items():
        estimator = getattr(pl, name)
        data = CLOUD[:, :1] if name == "Transport1D" else CLOUD
        for good in settings:
            for argument, value in good.items():
                for bad in spoilt(argument, "float" if argument == "error" else "int | None", None, value):
                    if not (argument == "error" and bad == math.inf):
                        yield f"{name}({argument}={bad!r:.60}).fit", partial(fitted, estimator, data, **{argument: bad})
        for bad in [*spoilt_arrays(data), 0 * data, data[:3], 1e300 * data, np.hstack([data, data])]:
            if not (isinstance(bad, np.ndarray) and bad.dtype.kind == "U"):  # numbers as words are numbers
                yield f"{name}.fit({bad!r:.60})", partial(fitted, estimator, bad)


def fitted(estimator, data, **parameters):
    """A fit, all of it."""
    return estimator(**parameters).fit(data)


def api_calls():
    """(what, call) for every malformed call of the public names."""
    yield from fit_calls()
    for name, good in good_calls().items():
        entry = public(name)
        for argument, parameter in inspect.signature(entry).parameters.items():
            if argument not in good:
                continue
            annotation = str(parameter.annotation)
            for value in spoilt(argument, annotation, parameter.default, good[argument]):
                if name in ELEMENTWISE and isinstance(value, np.ndarray) and value.shape != np.shape(good[argument]):
                    continue
                if isinstance(value, float) and value == -1.0 and (name, argument) in SYMMETRIC:
                    continue
                if isinstance(value, list) and (name, argument) in IDS_OR_NUMBER:
                    continue
                yield f"{name}({argument}={value!r:.60})", partial(entry, **{**good, argument: value})
