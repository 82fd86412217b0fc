"""One system to a tolerance of 1e-8, Q = K = V = I, final tokens recorded: n = 32 to T = 10, and the README's run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from pathlines.integrate import flow
from pathlines.integrate.batched import one_run, shared_settings
from pathlines.integrate.observe import positions
from pathlines.model import SelfAttention
from pathlines.sweep.bench.case import Case, Contender, add
from pathlines.sweep.bench.fields import Tokens, jax_field, numpy_field, torch_field, uniform_tokens

UNTIL, TOLERANCE = 10.0, 1e-8

Call = Callable[[], Any]


def by_scipy(method: str, until: float, p: Tokens, tolerance: float = TOLERANCE) -> Call:
    """``solve_ivp`` of the NumPy field."""
    field, shape = numpy_field(p), p.x.shape
    right = lambda t, y: field(y.reshape(shape)).ravel()  # noqa: E731
    return lambda: solve_ivp(right, (0, until), p.x.ravel(), method, t_eval=[until], rtol=tolerance, atol=tolerance)


def by_torchdiffeq(until: float, p: Tokens) -> Call:
    """``odeint`` with Dormand-Prince 5(4)."""
    import torch
    from torchdiffeq import odeint

    field, x, times = (
        torch_field(p, fused=False),
        torch.from_numpy(p.x),
        torch.tensor([0.0, until], dtype=torch.float64),
    )

    def call() -> Any:
        with torch.inference_mode():
            return odeint(lambda t, y: field(y), x, times, rtol=TOLERANCE, atol=TOLERANCE, method="dopri5")[-1]

    return call


def by_diffrax(until: float, p: Tokens) -> Call:
    """Compiled ``diffeqsolve`` with Dormand-Prince 5(4) of plain JAX attention."""
    import diffrax

    field, x = jax_field(p, "plain"), jnp.asarray(p.x)
    term = diffrax.ODETerm(lambda t, y, _: field(y))
    steps = diffrax.PIDController(rtol=TOLERANCE, atol=TOLERANCE)

    @jax.jit
    def program(x: jax.Array) -> jax.Array:
        answer = diffrax.diffeqsolve(
            term, diffrax.Dopri5(), 0.0, until, None, x, stepsize_controller=steps, max_steps=100_000
        )
        return answer.ys[-1]

    return lambda: program(x).block_until_ready()


def by_steps(method: str, until: float, p: Tokens) -> Call:
    """The steps of ``flow`` alone, compiled: what a program of one's own would call."""
    model, x = SelfAttention(p.beta), jnp.asarray(p.x)
    grid = np.array([until])
    lanes = shared_settings(model, x, grid, (positions,), method, TOLERANCE, None, None, 100_000)
    program = eqx.filter_jit(lambda lanes, model, x: one_run(lanes, model, x)[1][0])
    return lambda: program(lanes, model, x).block_until_ready()


def by_flow(method: str, until: float, p: Tokens) -> Call:
    """``pathlines.flow``, everything included: checks, certificates, the labelled result."""
    model = SelfAttention(p.beta)
    return lambda: flow(model, p.x, times=[until], method=method, rtol=TOLERANCE, progress=False)


@cache
def _reference(beta: float, until: float, shape: tuple[int, ...], start: bytes) -> np.ndarray:
    p = Tokens(np.frombuffer(start).reshape(shape), beta, None)
    return by_scipy("DOP853", until, p, 1e-13)().y[:, -1].reshape(shape)


def solve_error(until: float, p: Tokens, answer: np.ndarray) -> float:
    """Against DOP853 at tolerance 1e-13."""
    return float(np.abs(answer - _reference(p.beta, until, p.x.shape, p.x.tobytes())).max())


def _scipy_tokens(p: Tokens, answer: Any) -> np.ndarray:
    return answer.y[:, -1].reshape(p.x.shape)


def _last(p: Tokens, answer: Any) -> np.ndarray:
    return np.asarray(answer)[-1]


def _flow_tokens(p: Tokens, run: Any) -> np.ndarray:
    return run["tokens"].values[-1]


def contenders(until: float) -> tuple[Contender, ...]:
    """Solvers that a user would pick, ours and others."""
    return (
        Contender("SciPy RK45", partial(by_scipy, "RK45", until), read=_scipy_tokens, steady=True),
        Contender("SciPy DOP853", partial(by_scipy, "DOP853", until), read=_scipy_tokens, steady=True),
        Contender("torchdiffeq", partial(by_torchdiffeq, until), needs="torchdiffeq"),
        Contender("diffrax", partial(by_diffrax, until), needs="diffrax"),
        Contender("compiled steps", partial(by_steps, "rk45", until), ours=True, read=_last),
        Contender("flow DOP853", partial(by_flow, "dop853", until), ours=True, read=_flow_tokens),
        Contender("automatic", partial(by_flow, "rk45", until), ours=True, read=_flow_tokens),
    )


for n, last, quick in ((32, UNTIL, True), (200, 30.0, False)):
    what = f"n = {n}, d = 3 to T = {last:g} at tolerance {TOLERANCE:g}"
    start = partial(uniform_tokens, n, 3, "float64", general=False)
    error = partial(solve_error, last)
    add(Case(f"solve/n={n},d=3", n, 3, "float64", what, start, contenders(last), error, quick))
