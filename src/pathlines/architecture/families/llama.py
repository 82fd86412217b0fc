"""Llama, Mistral and Qwen: RMS norms before each branch, gated perceptron, rotary positions, grouped keys."""

from __future__ import annotations

from pathlines.architecture.config import Config
from pathlines.architecture.family import family
from pathlines.architecture.record import Architecture, Deviations
from pathlines.architecture.rope import rope_of

# Biases start at zero, so whether they exist does not matter.
_IRRELEVANT = (
    "attention_bias mlp_bias rope_interleaved max_window_layers layer_types is_decoder use_mrope "
    "original_max_position_embeddings"
)


def decoder(config: Config, family: str, default_activation: str = "silu", windowed: bool = True) -> Architecture:
    """What the families of this kind have in common; one std for every matrix.

    A window counts unless `use_sliding_window` is false, or absent where its default (``windowed``) is false (Qwen).
    """
    std = config.number("initializer_range", 0.02)
    base, fraction = rope_of(config)
    heads = config.integer("num_attention_heads", "number of heads")
    window = config.optional("sliding_window", "how far back a token sees")
    window = window if config.flag("use_sliding_window", windowed) else 0
    return Architecture(
        family=family,
        width=config.integer("hidden_size", "width"),
        heads=heads,
        kv_heads=config.integer("num_key_value_heads", "number of key and value heads", heads),
        head_dim=config.optional("head_dim", "size of a head"),
        layers=config.integer("num_hidden_layers", "number of layers"),
        context=config.integer("max_position_embeddings", "longest input", 2048),
        vocabulary=config.integer("vocab_size", "size of the vocabulary", 32000),
        mlp_width=config.integer("intermediate_size", "width of the perceptron"),
        activation=config.activation("hidden_act", default_activation),
        gated=True,
        norm="rms",
        placement="pre",
        norm_epsilon=config.number("rms_norm_eps", 1e-6),
        tied=config.flag("tie_word_embeddings", False),
        mask="causal",
        window=window,
        positions="rope",
        rope_base=base,
        rope_fraction=fraction,
        deviations=Deviations.equal(std),
    )


@family("llama", irrelevant=_IRRELEVANT)
def llama(config: Config) -> Architecture:
    """The plain one."""
    return decoder(config, "llama")


@family("mistral", irrelevant=_IRRELEVANT)
def mistral(config: Config) -> Architecture:
    """With a sliding window in its first version."""
    return decoder(config, "mistral")


@family("qwen2", irrelevant=_IRRELEVANT)
def qwen2(config: Config) -> Architecture:
    """Biases on queries, keys and values, zero at the start; head_dim is always width/heads."""
    return decoder(config, "qwen2", windowed=False)


@family("qwen3", irrelevant=_IRRELEVANT)
def qwen3(config: Config) -> Architecture:
    """RMS norms on the queries and keys of each head."""
    return decoder(config, "qwen3", windowed=False).changed(qk_norm=True)
