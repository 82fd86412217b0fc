"""Rules of the table of families: what is read beside sizes, each for all the rows that share it."""

from __future__ import annotations

import math
from typing import Any

from pathlines.architecture.convention import Draft, Rule, inverse_root
from pathlines.architecture.rope import rope_of

LOCAL = ("sliding_attention", "chunked_attention", "local")


def rotary(fraction: float = 1.0, base_name: str = "rope_theta", fraction_name: str = "partial_rotary_factor") -> Rule:
    """Rotary positions; layers with a window may turn at another rate."""

    def read(d: Draft) -> None:
        base, part = rope_of(d.config, base_name, fraction_name, fraction)
        d.fields |= {"positions": "rope", "rope_base": base, "rope_fraction": part}
        local = d.config.section("rope_parameters").section("sliding_attention").get("rope_theta")
        d.local_base = d.config.get("rope_local_base_freq", local)

    return read


def layer_kinds(d: Draft) -> list[str]:
    """The word of each layer: `layer_types`, or what older files say by a pattern."""
    kinds = d.config.get("layer_types")
    if kinds is not None:
        if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds) or len(kinds) < d.layers:
            d.config.refuse("layer_types", f"a list of {d.layers} words, one for each layer")
        return kinds[: d.layers]
    return []


def windows(every: int = 0, default: bool = True) -> Rule:
    """A window in the layers that `layer_types` names, else in all but every ``every``-th (0: in all).

    ``default``: whether a window counts without `use_sliding_window`.
    """

    def read(d: Draft) -> None:
        config, kinds = d.config, layer_kinds(d)
        size = config.optional("sliding_window", "how far back a token sees")
        used = config.flag("use_sliding_window", default)
        period = config.get("sliding_window_pattern", config.get("_sliding_window_pattern", every)) or 0
        period = period if isinstance(period, int) else every
        first = config.get("max_window_layers", 0) if "use_sliding_window" in config.usual else 0
        if not used or not size:
            return
        if not kinds:
            kinds = [
                "full_attention" if (period and (k + 1) % period == 0) or k < first else "sliding_attention"
                for k in range(d.layers)
            ]
        seen_by_some(d, kinds, size)

    return read


def seen_by_some(d: Draft, kinds: list[str], size: int) -> None:
    """A window, and the rotation that goes with it, in the layers that are local."""
    d.by_layer("window", [size if kind in LOCAL else 0 for kind in kinds])
    base = d.local_base
    if isinstance(base, (int, float)):
        d.by_layer("rope_base", [float(base) if kind in LOCAL else d.fields["rope_base"] for kind in kinds])


def experts(
    count: str,
    active: str = "num_experts_per_tok",
    width: str = "",
    shared: str = "",
    shares: bool | str = True,
    score: str = "softmax",
    dense: str = "",
    scale: str = "",
) -> Rule:
    """Experts of a width, in the layers that are not dense; names of fields, ``shares`` may be a constant."""

    def read(d: Draft) -> None:
        config = d.config
        several = config.optional(count, "number of experts")
        if not several:
            return
        inner = d.fields["mlp_width"]
        own = config.integer(width, "width of an expert", config.usual.get(width)) if width else inner
        beside = config.optional(shared, "width of the shared expert") if shared and shared != "n_shared_experts" else 0
        if shared == "n_shared_experts":
            beside = own * config.optional(shared, "experts for all tokens")
        d.fields |= {
            "active_experts": config.integer(active, "experts for a token", 2),
            "expert_score": score,
            "expert_shares": config.flag(shares, False) if isinstance(shares, str) else shares,
            "expert_scale": config.number(scale, 1.0) if scale else 1.0,
            "shared_width": beside,
        }
        d.deviations["router"] = d.std
        sparse = [_sparse(d, dense, k) for k in range(d.layers)]
        d.by_layer("experts", [several if yes else 0 for yes in sparse])
        d.by_layer("mlp_width", [own if yes else inner for yes in sparse])

    return read


def _sparse(d: Draft, dense: str, layer: int) -> bool:
    """Whether a layer has experts."""
    if dense == "first":
        return layer >= (d.config.get("first_k_dense_replace", 0) or 0)
    if dense == "step":
        plain = d.config.get("mlp_only_layers", []) or []
        if not isinstance(plain, list):
            d.config.refuse("mlp_only_layers", "a list of numbers of layers")
        return layer not in plain and (layer + 1) % d.config.integer("decoder_sparse_step", "experts every", 1) == 0
    return True


def no_rope(d: Draft) -> None:
    """Layers without positions: `no_rope_layers` (0 there), or every `no_rope_layer_interval`-th."""
    listed = d.config.get("no_rope_layers")
    if listed is None:
        every = d.config.integer("no_rope_layer_interval", "layers without positions every", 4)
        listed = [int((k + 1) % every != 0) for k in range(d.layers)]
    if isinstance(listed, list) and len(listed) < d.layers:
        d.config.refuse("no_rope_layers", f"a list of {d.layers} numbers, one for each layer")
    d.by_layer("positions", ["rope" if yes else "none" for yes in listed[: d.layers]])


def rope_where_local(d: Draft) -> None:
    """Only layers with a window have positions."""
    kinds = layer_kinds(d) or ["full_attention" if (k + 1) % 4 == 0 else "sliding_attention" for k in range(d.layers)]
    d.by_layer("positions", ["rope" if kind in LOCAL else "none" for kind in kinds])


def projections(names: tuple[str, ...] = ("output", "mlp_out")) -> Rule:
    """Output projections smaller by 1/√(2L)."""
    return lambda d: d.scale(inverse_root(2 * d.layers), *names)


def deviation(**values: float) -> Rule:
    """Deviations that no field says."""
    return lambda d: d.deviations.update(values)


def scaled_embedding(d: Draft) -> None:
    """Embeddings times √d, always."""
    d.fields["embedding_scale"] = math.sqrt(d.width)


def scale_embedding(d: Draft) -> None:
    """Embeddings times √d where `scale_embedding` says so."""
    if d.config.flag("scale_embedding", False):
        scaled_embedding(d)


def multiplied(**names: str) -> Rule:
    """Factors under names of their own."""

    def read(d: Draft) -> None:
        for field, name in names.items():
            d.fields[field] = d.config.number(name, 1.0)

    return read


def both_branches(name: str) -> Rule:
    """One factor for both branches."""
    return multiplied(attention_residual=name, mlp_residual=name)


def parallel_if(name: str, otherwise: str = "pre") -> Rule:
    """Branches side by side where a flag says so."""
    return lambda d: d.fields.update(placement="parallel" if d.config.flag(name, True) else otherwise)


def norm_on_queries_if(name: str) -> Rule:
    """Norms of queries and keys where a flag says so."""
    return lambda d: d.fields.update(qk_norm=d.config.flag(name, False))


def token_types(default: int) -> Rule:
    """Types of tokens; type 0 is added to all."""

    def read(d: Draft) -> None:
        there = d.config.get("type_vocab_size", default)
        d.fields["types"] = there if isinstance(there, int) and there > 0 else 0
        d.deviations["type"] = d.std if d.fields["types"] else 0.0

    return read


def positions_from(offset: int) -> Rule:
    """Rows of the position table that lie before the first position."""
    return lambda d: d.fields.update(context=max(d.fields["context"] - offset, 2))


def embedded_at(name: str) -> Rule:
    """Embeddings of another width, projected where it is not the stream's."""

    def read(d: Draft) -> None:
        width = d.config.integer(name, "width of the embeddings", 128)
        if width != d.width:
            d.fields["embedding_width"] = width
            d.deviations["projection"] = d.std

    return read


def decoder_flag(d: Draft) -> None:
    """Encoders that may be decoders."""
    if d.config.flag("is_decoder", False):
        d.fields["mask"] = "causal"


def absolute(d: Draft) -> None:
    """Positions of other kinds are refused."""
    if d.config.get("position_embedding_type", "absolute") != "absolute":
        d.config.refuse("position_embedding_type", "'absolute'")


def only(name: str, *allowed: Any, because: str) -> Rule:
    """Refuse what the record cannot say."""

    def read(d: Draft) -> None:
        if d.config.get(name, allowed[0]) not in allowed:
            d.config.refuse(name, because)

    return read


def patches(d: Draft) -> None:
    """Tokens are the patches, and the class token if there is one; pixels are taken to have mean square one."""
    image, patch = (d.config.integer(n, "pixels a side", v) for n, v in (("image_size", 224), ("patch_size", 16)))
    channels = d.config.integer("num_channels", "colours", 3)
    if image % patch:
        d.config.refuse("patch_size", f"a divisor of image_size = {image}")
    d.fields |= {"patch_inputs": channels * patch**2, "context": (image // patch) ** 2 + d.fields["class_token"]}


def latent(d: Draft) -> None:
    """Queries, keys and values through narrow norms (multi-head latent attention): matrices of the same second moments.

    A latent of r numbers has unit mean square, so W of r columns counts as one of d columns times √(r/d).
    """
    c = d.config
    rank = c.integer("kv_lora_rank", "width of the latent of keys and values", 512)
    query = c.optional("q_lora_rank", "width of the latent of queries")
    still, turned = (c.integer(f"qk_{n}_head_dim", "size of a part of a head", 64) for n in ("nope", "rope"))
    both = still + turned
    d.fields |= {
        "head_dim": both, "value_dim": c.integer("v_head_dim", "size of a value", 128), "kv_heads": 0,
        "rope_fraction": turned / both,
    }  # fmt: skip
    if query:
        d.scale(math.sqrt(query / d.width), "query")
    d.scale(math.sqrt((still * rank / d.width + turned) / both), "key")
    d.scale(math.sqrt(rank / d.width), "value")
