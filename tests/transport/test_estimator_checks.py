"""scikit-learn's own checks of estimators: all that apply are passed; the others are named, with reasons.

A reason is not believed either: a check that is listed here must fail.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

import pathlines as pl

ONE_COLUMN = "the check gives its data as one column's numbers (tag one_d_array) and then indexes columns itself"
PLANE = "maps of the square take two columns, the data of the check have more"
SPACE = "the field has three dimensions, the data of the check another number"
IGNORED = "the flow is built from a map or field; `fit` ignores X"


def still(x):
    return x


def spin(u):
    """Neurons of the rotation about the third axis."""
    angle = 2 * np.pi * u[:, 0]
    a = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    return 4 * a[:, [1, 0, 2]] * [-1, 1, 0], a, np.zeros(len(u))


LEARNS_NOTHING = dict.fromkeys(
    (
        "check_n_features_in_after_fitting",
        "check_complex_data",
        "check_estimators_empty_data_messages",
        "check_estimators_nan_inf",
        "check_estimator_sparse_tag",
        "check_fit1d",
    ),
    IGNORED,
)
ESTIMATORS = {
    "TriangularFlow": (pl.TriangularFlow(bins=2, knots=4), {}),
    "RidgeFlow": (pl.RidgeFlow(layers=3), {}),
    "Transport1D": (
        pl.Transport1D(),
        dict.fromkeys(
            (
                "check_dont_overwrite_parameters",
                "check_n_features_in_after_fitting",
                "check_dtype_object",
                "check_estimator_sparse_array",
                "check_f_contiguous_array_estimator",
                "check_transformer_data_not_an_array",
                "check_transformer_general",
                "check_methods_sample_order_invariance",
                "check_methods_subset_invariance",
                "check_fit2d_1sample",
                "check_fit2d_1feature",
                "check_dict_unchanged",
                "check_n_features_in",
                "check_fit2d_predict1d",
            ),
            ONE_COLUMN,
        )
        | {"check_fit1d": "one dimension is what it takes"},
    ),
    "DiffeoFlow": (
        pl.DiffeoFlow(still, grid=2),
        dict.fromkeys(
            (
                "check_fit_score_takes_y",
                "check_estimators_dtypes",
                "check_dtype_object",
                "check_pipeline_consistency",
                "check_estimators_pickle",
                "check_f_contiguous_array_estimator",
                "check_transformer_data_not_an_array",
                "check_transformer_general",
                "check_methods_sample_order_invariance",
                "check_methods_subset_invariance",
                "check_dict_unchanged",
            ),
            PLANE,
        )
        | LEARNS_NOTHING,
    ),
    "MaureyFlow": (
        pl.MaureyFlow(spin, pieces=16),
        dict.fromkeys(
            ("check_estimators_dtypes", "check_dtype_object", "check_fit_idempotent", "check_n_features_in"), SPACE
        )
        | LEARNS_NOTHING,
    ),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_scikit_learn_agrees(name, monkeypatch):
    estimator, reasons = ESTIMATORS[name]
    if name == "DiffeoFlow":  # fitted some forty times; what is checked does not depend on the number of points
        monkeypatch.setattr("pathlines.transport.euclid.diffeo.PUSHED", 20_000)
        monkeypatch.setattr("pathlines.transport.euclid.diffeo.TESTED", 2_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the checks themselves
        found = check_estimator(estimator, on_fail=None, on_skip=None, expected_failed_checks=reasons)
    failed = {f["check_name"]: str(f["exception"])[:200] for f in found if f["status"] == "failed"}
    assert not failed
    assert {f["check_name"] for f in found if f["status"] == "xfail"} == set(reasons)
    assert sum(f["status"] == "passed" for f in found) >= 26


@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_get_params_invariance",
        "check_set_params",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
    ],
)
def test_scikit_learn_agrees_on_interpolators(check):
    """``MeasureInterpolator`` moves lists of clouds, not a table of rows: what applies is about its parameters."""
    getattr(estimator_checks, check)("MeasureInterpolator", pl.MeasureInterpolator())


def test_clones_are_not_fitted():
    fitted = pl.RidgeFlow(layers=2, finetune=0, seed=3).fit(np.random.default_rng(0).normal(size=(60, 2)))
    other = clone(fitted)
    assert other.get_params() == fitted.get_params() and not hasattr(other, "schedule_")
    assert repr(fitted) == "RidgeFlow(layers=2, knots=16, pieces=None, error=None, finetune=0, seed=3)"
