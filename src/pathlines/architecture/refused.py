"""Models that the theory does not cover, by name with the reason, and what it leaves out of those it covers."""

from __future__ import annotations

from typing import Any

from pathlines.architecture.record import Architecture
from pathlines.foundation.errors import ArgumentError

PARTS = ("text_config", "vision_config", "language_config", "encoder")
"""Where models of several parts keep the one that is read."""

REASONS = {
    "its layers are state-space models or linear recurrences, not attention": """mamba mamba2 falcon_mamba rwkv xlstm
        minimax""",
    "it mixes attention with state-space or recurrent layers": """jamba bamba zamba zamba2 falcon_h1 granitemoehybrid
        nemotron_h recurrent_gemma lfm2 lfm2_moe qwen3_next kimi_linear olmo_hybrid qwen3_5_text qwen3_5_moe_text
        bailing_hybrid hrm_text""",
    "tokens are mixed by Fourier transforms or convolutions, not attention": """
        fnet convbert convnext convnextv2 poolformer
        resnet regnet mobilenet_v1 mobilenet_v2 efficientnet focalnet squeezebert""",
    "the number of tokens changes from layer to layer": """funnel swin swinv2 pvt pvt_v2 cvt segformer hiera
        perceiver canine""",
    "its attention is sparse by blocks, hashes or projections": """
        longformer led big_bird bigbird_pegasus reformer longt5
        nystromformer mra yoso doge""",
    "logits have terms in relative positions of their own matrices": "deberta deberta-v2 xlnet transfo-xl roformer",
    "every layer takes the difference of two attentions": "diffllama",
    "its activation is learned": "apertus",
    "its router scores experts in a way of its own": "phimoe",
    "its positions are sines, of which LayerNorm takes a part away": "xglm marian m2m_100 pegasus ctrl",
    "its class token starts at zero, where no direction is": "vit_msn",
    "its layers are chosen or doubled in a way of its own (per-layer embeddings, several streams)": """gemma3n_text
        gemma4_text llama4_text""",
    "of its decoder's layers a third attend to an encoder": "whisper speech_to_text trocr",
}
_REFUSED = {name: reason for reason, names in REASONS.items() for name in names.split()}


def check_refused(name: Any, source: str) -> None:
    """Raise where the theory does not hold."""
    if isinstance(name, str) and name in _REFUSED:
        raise ArgumentError(f"{source} has `model_type` {name!r}, which is not predicted: {_REFUSED[name]}.")


_BARTS = frozenset(("bart", "plbart", "mbart", "blenderbot", "blenderbot-small"))
_BIAS = frozenset(("t5", "mt5", "umt5", "mpnet"))


def left_out(name: str, architecture: Architecture) -> tuple[str, ...]:
    """Sentences on what is part of a model and not of its record."""
    found = []
    if name in _BARTS | {"t5", "mt5", "umt5"}:
        found.append("the encoder is read; layers of the decoder, which attend to it, are not")
    if name in _BIAS:
        found.append("the small bias of logits by relative position is left out")
    if architecture.experts or "experts" in architecture.by_layer:
        found.append("experts are chosen by a router at initialisation, without groups or balance")
    if architecture.positions == "alibi" and architecture.heads & (architecture.heads - 1):
        found.append("slopes of ALiBi are those of 2^(-8h/H), also where H is no power of two")
    return tuple(found)
