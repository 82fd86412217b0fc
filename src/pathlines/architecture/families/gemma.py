"""Gemma: a decoder of the Llama kind, embeddings multiplied by √d; from the second version norms on both sides."""

from __future__ import annotations

import math

from pathlines.architecture.config import Config
from pathlines.architecture.families.llama import decoder
from pathlines.architecture.family import family
from pathlines.architecture.record import Architecture

_IRRELEVANT = (
    "attention_bias hidden_activation cache_implementation final_logit_softcapping layer_types rope_local_base_freq "
    "sliding_window_pattern _sliding_window_pattern is_decoder"
)


def _gemma(config: Config, family: str) -> Architecture:
    """Gains are stored as 1 + w with w = 0 at the start, so they are one. Embedding models see both ways."""
    config.activation("hidden_activation", "gelu_pytorch_tanh")
    plain = decoder(config, family, "gelu_pytorch_tanh")
    mask = "full" if config.flag("use_bidirectional_attention", False) else "causal"
    tied = config.flag("tie_word_embeddings", True)
    return plain.changed(embedding_scale=math.sqrt(plain.width), tied=tied, mask=mask)


def _sandwiched(config: Config, family: str) -> Architecture:
    """The logit multiplier is `query_pre_attn_scalar`^-1/2; the window of every second layer is left out."""
    plain = _gemma(config, family)
    scalar = config.number("query_pre_attn_scalar", 256.0)
    if not 0 < scalar < math.inf:
        config.refuse("query_pre_attn_scalar", "a finite number > 0 (the head's size, for example 256)")
    return plain.changed(placement="sandwich", window=0, logit_multiplier=scalar**-0.5)


@family("gemma", irrelevant=_IRRELEVANT)
def gemma(config: Config) -> Architecture:
    """First version: pre-normalisation."""
    return _gemma(config, "gemma")


@family("gemma2", irrelevant=_IRRELEVANT)
def gemma2(config: Config) -> Architecture:
    """Norms on both sides of a branch, logits capped."""
    cap = config.number("attn_logit_softcapping", 0.0)
    return _sandwiched(config, "gemma2").changed(logit_cap=cap)


@family("gemma3_text", irrelevant=_IRRELEVANT + " attn_logit_softcapping")
def gemma3(config: Config) -> Architecture:
    """Norms on both sides, and on queries and keys."""
    return _sandwiched(config, "gemma3").changed(qk_norm=True)
