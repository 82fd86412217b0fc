"""A training watched: similarity, rank, entropy of attention and gradients of every layer, every k steps.

Hooks on the layers keep what flows between them at the steps that are looked at; all other steps run as they were. The
prediction at initialisation is the first entry. The file is the one of a run (``pathlines show``, ``pathlines view``).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pathlines.architecture.read import from_config
from pathlines.foundation.errors import ArgumentError, PathlinesError, positive_integer, require
from pathlines.probing.curves import stream_rank
from pathlines.probing.libraries import torch_and_transformers
from pathlines.probing.stream import layers_of

TOKENS = 64
"""Of a batch, those of its first sequence are looked at, this many at most."""
NAMES = ("mean_cosine", "effective_rank", "attention_entropy", "gradient")


class Seen(msgspec.Struct, frozen=True):
    """What was seen at one step; arrays over depth have L+1 entries, ``attention_entropy`` L (NaN where unseen)."""

    step: int
    mean_cosine: list[float]
    effective_rank: list[float]
    attention_entropy: list[float]
    gradient: list[float]


class Watch:
    """Record every layer of a torch module while it trains.

    Args:
        model: a module of the ``transformers`` library, or any whose layers are a list of modules (``layers``).
        every: look at every ``every``-th step. The more, the less it costs.
        layers: the layers, where they are not the outermost lists of modules.
        tokens: token ids that the prediction at initialisation is for; those of the first batch by default.

    Call ``step()`` after each optimiser step, or hand ``callback()`` to a Hugging Face ``Trainer`` or
    ``lightning_callback()`` to Lightning. ``save("watch.nc")`` writes a run that `pathlines show` and `pathlines view`
    open. You will see tokens of a collapsing model drift together layer by layer, and gradients of the first layers
    fade. Entropy is that of the attention weights where layers return them (eager attention).
    """

    def __init__(self, model: Any, *, every: int = 50, layers: list[Any] | None = None, tokens: Any = None) -> None:
        torch, _ = torch_and_transformers()
        self._torch, self.model = torch, model
        self.every = positive_integer("every", every)
        self.layers = layers_of(model) if layers is None else list(layers)
        require(len(self.layers) > 0, "model", "have a list of layers, or be given them", type(model).__name__)
        self.seen: list[Seen] = []
        self.steps, self.seconds = 0, 0.0
        self.predicted = None if tokens is None else _predicted(model, tokens, len(self.layers))
        self._first = None if tokens is not None else model.register_forward_pre_hook(self._read, with_kwargs=True)
        self._caught: list[Any] = []
        self._weights: list[Any] = []
        self._hooks: list[Any] = []
        self._look()

    def _look(self) -> None:
        """Hooks for the step that comes next, if it is one to look at."""
        if self.steps % self.every or self._hooks:
            return
        self._caught, self._weights = [], []
        self._hooks = [layer.register_forward_hook(self._catch, with_kwargs=True) for layer in self.layers]

    def _read(self, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The token ids of the first batch."""
        ids = kwargs.get("input_ids", args[0] if args else None)
        if self._first is None or ids is None or not hasattr(ids, "dim") or ids.dim() != 2:
            return
        self._first.remove()
        self._first = None
        self.predicted = _predicted(self.model, ids[0, :TOKENS].cpu().numpy(), len(self.layers))

    def _catch(self, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if len(self._caught) > len(self.layers) or not self._torch.is_grad_enabled():
            return
        begun = time.perf_counter()
        after = output[0] if isinstance(output, (tuple, list)) else output
        first = [] if self._caught else [args[0] if args else kwargs["hidden_states"]]
        for tensor in (*first, after):
            if tensor.requires_grad:
                tensor.retain_grad()
            self._caught.append(tensor)
        rest = output[1:] if isinstance(output, (tuple, list)) else ()
        self._weights.append(next((t for t in rest if _is_attention(t)), None))
        self.seconds += time.perf_counter() - begun

    def step(self) -> Seen | None:
        """After a step of the optimiser (or at least after the reverse pass); what was seen, if it was looked at."""
        begun = time.perf_counter()
        found = None
        if self._hooks:
            for hook in self._hooks:
                hook.remove()
            self._hooks = []
            if len(self._caught) == len(self.layers) + 1:
                found = self._observed()
                self.seen.append(found)
            elif self.steps == 0:
                warnings.warn(
                    f"Watch saw {max(len(self._caught) - 1, 0)} of {len(self.layers)} layers, and records nothing.",
                    stacklevel=2,
                )
            self._caught, self._weights = [], []
        self.steps += 1
        self._look()
        self.seconds += time.perf_counter() - begun
        return found

    def _observed(self) -> Seen:
        hidden = [_rows(h) for h in self._caught]
        unit = [h / np.maximum(np.linalg.norm(h, axis=1, keepdims=True), 1e-30) for h in hidden]
        n = len(unit[0])
        cosines = [(float(np.sum(np.sum(u, axis=0) ** 2)) - n) / (n * (n - 1)) for u in unit]
        gradients = [float("nan") if h.grad is None else float(h.grad.float().norm()) for h in self._caught]
        return Seen(self.steps, cosines, [stream_rank(u) for u in unit], [*map(_entropy, self._weights)], gradients)

    def stop(self) -> None:
        """Take the hooks away."""
        for hook in (*self._hooks, *([self._first] if self._first else [])):
            hook.remove()
        self._hooks, self._first = [], None

    def callback(self) -> Any:
        """For ``transformers.Trainer(callbacks=[…])``."""
        _, transformers = torch_and_transformers()
        watch = self

        class Watching(transformers.TrainerCallback):  # type: ignore[name-defined]
            """Looks after each reverse pass, before gradients are set to zero."""

            def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
                watch.step()

            def on_train_end(self, *_: Any, **__: Any) -> None:
                watch.stop()

        return Watching()

    def lightning_callback(self) -> Any:
        """For ``lightning.Trainer(callbacks=[…])``."""
        watch, base = self, _lightning()

        class Watching(base):  # type: ignore[misc,valid-type]
            """Looks after each reverse pass, before gradients are set to zero."""

            def on_before_optimizer_step(self, *_: Any, **__: Any) -> None:
                watch.step()

            def on_train_end(self, *_: Any, **__: Any) -> None:
                watch.stop()

        return Watching()

    def dataset(self) -> Any:
        """Everything as an xarray Dataset: dims ``time`` (steps) and ``layer``; ``predicted_mean_cosine`` by layer."""
        import xarray as xr

        if not self.seen:
            raise PathlinesError("Nothing was seen yet: call step() after each step of the optimiser.")
        depth = len(self.layers)
        data: dict[str, Any] = {}
        for name in NAMES:
            values = np.full((len(self.seen), depth + 1), np.nan)
            for k, one in enumerate(self.seen):
                row = getattr(one, name)
                values[k, : len(row)] = row
            data[name] = (("time", "layer"), values)
        if self.predicted is not None:
            data["predicted_mean_cosine"] = (("layer",), self.predicted[0])
            data["predicted_spread"] = (("layer",), self.predicted[1])
        times = [float(one.step) for one in self.seen]
        found = xr.Dataset(data, coords={"time": times, "layer": np.arange(depth + 1)})
        found.attrs |= {"model": type(self.model).__name__, "every": self.every, "layers": depth}
        return found

    def save(self, path: Path | str) -> Path:
        """Write the file of a run."""
        from pathlines.probing.watched import save_watch

        return save_watch(self, path)

    def plot(self) -> Any:
        """Mean cosine by layer at the steps that were seen, and the prediction at initialisation."""
        from pathlines.probing.watched import watch_figure

        return watch_figure(self.dataset())


def _is_attention(value: Any) -> bool:
    return hasattr(value, "dim") and value.dim() == 4 and value.shape[-1] == value.shape[-2]


def _rows(hidden: Any) -> np.ndarray:
    """Tokens of the first sequence."""
    one = hidden.detach()
    while one.dim() > 2:
        one = one[0]
    if len(one) < 2:
        raise ArgumentError("Watch needs sequences of two tokens or more.")
    return np.asarray(one[:TOKENS].float().cpu().numpy(), np.float64)


def _entropy(weights: Any) -> float:
    """Mean over heads and rows of the first sequence, in nats."""
    if weights is None:
        return float("nan")
    p = weights.detach()[0].float()
    return float(-(p * p.clamp_min(1e-30).log()).sum(-1).mean())


def _predicted(model: Any, tokens: Any, depth: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Mean cosine and spread at initialisation by layer, where the configuration is understood."""
    config = getattr(model, "config", None)
    if config is None or not hasattr(config, "to_dict"):
        return None
    from pathlines.limit.architecture.predict import predict

    try:
        found = predict(from_config(config.to_dict()).architecture, tokens)
    except PathlinesError:
        return None
    return (found.mean_cosine, found.spread) if len(found.mean_cosine) == depth + 1 else None


def _lightning() -> Any:
    """Lightning's own base class; a plain one where it is not installed, which Lightning's trainer would refuse."""
    for name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            return __import__(name, fromlist=["Callback"]).Callback
        except ImportError:
            continue
    raise PathlinesError("Lightning is not installed: pip install lightning.")


def overhead(watched: Callable[[], None], plain: Callable[[], None], repeats: int = 5) -> float:
    """Processor time with the watch over that without, less one: alternated, the median of ``repeats``."""
    ratios = []
    for _ in range(repeats):
        times = []
        for run in (plain, watched):
            begun = time.process_time()
            run()
            times.append(time.process_time() - begun)
        ratios.append(times[1] / times[0] - 1)
    return float(np.median(ratios))
