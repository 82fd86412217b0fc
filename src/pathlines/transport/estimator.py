"""What all flow estimators share: the conventions of scikit-learn, without needing it.

``fit`` learns a schedule that moves N(0, I) to the law of the data; ``transform`` sends data to the Gaussian (exactly
invertible), ``inverse_transform`` comes back, ``sample`` draws, ``log_prob`` is the exact log-density, and
``report_`` says how many pieces there are and how far the result is from its target. Each takes a budget of pieces or
a target for the error.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_number, positive_integer
from pathlines.transport.euclid.schedule import EuclideanSchedule
from pathlines.transport.parameters import EstimatorSettings

ESTIMATED = "held-out likelihood; KL by nearest neighbours of held-out samples"
"""How flows that were fitted to samples are judged."""


class NotNumbersError(ArgumentError, TypeError):
    """Samples that are no numbers; scikit-learn expects a TypeError."""


class FlowReport(msgspec.Struct, frozen=True):
    """What a fitted flow is worth.

    ``kl`` is KL(target‖flow) with its standard error or quadrature error ``kl_error``; ``method`` says how it was
    found, from the target's density or from held-out samples (an estimate, which may be negative). ``held_out`` is the
    mean log-density of samples that were not fitted, ``round_trip`` the largest |x - Φ^{-1}Φx| on draws,
    ``log_lipschitz`` the bound Σ|w||a|t, ``seconds`` the time of the fit.
    """

    pieces: int
    switches: int
    log_lipschitz: float
    round_trip: float
    seconds: float
    method: str
    kl: float | None = None
    kl_error: float | None = None
    reverse_kl: float | None = None
    tv: float | None = None
    held_out: float | None = None


def reported(flow: EuclideanSchedule, seconds: float, method: str, **errors: Any) -> FlowReport:
    """The report of a schedule; the round trip is measured on a thousand draws."""
    draws = np.random.default_rng(0).standard_normal((1000, flow.d))
    trip = float(np.abs(flow.backward(flow.forward(draws)[0])[0] - draws).max())
    return FlowReport(flow.count, flow.switches, flow.log_lipschitz(), trip, seconds, method, **errors)


class FlowEstimator(EstimatorSettings):
    """Base of the estimators; parameters are the arguments of ``__init__``, results end in an underscore."""

    schedule_: EuclideanSchedule
    report_: Any
    n_features_in_: int

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "schedule_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            no_validation=False,
        )

    def transform(self, X: Any) -> np.ndarray:
        """Data to the Gaussian."""
        return self._fitted().backward(self._data(X))[0]

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, then transform the same data."""
        return self.fit(X).transform(X)  # type: ignore[attr-defined]

    def inverse_transform(self, Z: Any) -> np.ndarray:
        """The Gaussian to the law of the data."""
        return self._fitted().forward(self._data(Z))[0]

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """n draws from the fitted law."""
        return self._fitted().sample(n, seed)

    def log_prob(self, X: Any) -> np.ndarray:
        """Exact log-density of the fitted law at the rows of X."""
        return self._fitted().log_prob(self._data(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-density of the rows of X."""
        return float(np.mean(self.log_prob(X)))

    def _fitted(self) -> EuclideanSchedule:
        if not hasattr(self, "schedule_"):
            raise ArgumentError(f"{type(self).__name__} is not fitted yet; call `fit` first.")
        return self.schedule_

    def _data(self, X: Any) -> np.ndarray:
        self._fitted()
        data = checked_samples(X, least=1)
        if data.shape[1] != self.n_features_in_:
            raise ArgumentError(
                f"X has {data.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )
        return data


def checked_samples(X: Any, least: int = 10) -> np.ndarray:
    """Samples as rows (n, d) of finite numbers; a bad row is named."""
    if hasattr(X, "toarray"):
        raise ArgumentError("Argument `X` must be dense, but is a sparse matrix, which is not supported: X.toarray().")
    try:
        data = np.asarray(X)
        if data.dtype.kind not in "iufbc":
            data = data.astype(float)
    except (TypeError, ValueError) as error:
        raise NotNumbersError(f"Argument `X` must be a table of real numbers, but: {error}.") from None
    if data.dtype.kind == "c":
        raise ArgumentError("Argument `X` must be real. Complex data not supported.")
    if data.ndim == 1:
        raise ArgumentError(
            "Argument `X` must have rows and columns, but has one dimension. Reshape your data: X.reshape(-1, 1)."
        )
    if data.ndim != 2:
        raise ArgumentError(f"Argument `X` must have shape (n, d), but has shape {data.shape}.")
    if data.shape[1] == 0:
        raise ArgumentError(f"Argument `X` has 0 feature(s) (shape={data.shape}) while a minimum of 1 is required.")
    bad = ~np.isfinite(data).all(axis=1)
    if bad.any():
        raise ArgumentError(
            f"Argument `X` must be finite, but row {int(bad.argmax())} has NaN or inf ({int(bad.sum())} such rows)."
        )
    if len(data) < least:
        raise ArgumentError(
            f"Argument `X` must have at least {least} samples, but has {len(data)} (n_samples={len(data)})."
        )
    return data.astype(float)


def check_covariance(data: np.ndarray) -> np.ndarray:
    """The covariance of samples, which must have full rank."""
    with np.errstate(all="ignore"):
        covariance = np.cov(data.T).reshape(data.shape[1], data.shape[1])
        spread = np.sqrt(np.diagonal(covariance))
        values = np.linalg.eigvalsh(covariance / np.outer(spread, spread)) if (spread > 0).all() else np.zeros(1)
    if not np.isfinite(covariance).all():
        raise ArgumentError(
            f"Argument `X` must have a finite covariance, but its numbers reach {np.abs(data).max():.3g}."
        )
    still = spread <= 1e-12 * np.abs(data.mean(0))
    if still.any():
        raise ArgumentError(f"The samples have a singular covariance: column {int(still.argmax())} does not vary.")
    if not values[0] > 1e-12:
        raise ArgumentError(
            f"The samples have a singular covariance (correlations have eigenvalues from {values[0]:.3g} to "
            f"{values[-1]:.3g})."
        )
    return covariance


def checked_goal(pieces: int | None, error: float | None, least: int) -> tuple[int | None, float | None]:
    """A budget of pieces or a target for the error, not both."""
    if pieces is not None and error is not None:
        raise ArgumentError("Arguments `pieces` and `error` exclude each other: give a budget or a target.")
    budget = None if pieces is None else positive_integer("pieces", pieces, least)
    return budget, None if error is None else finite_number("error", error, 0.0, open_low=True)
