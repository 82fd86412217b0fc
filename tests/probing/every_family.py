"""A small configuration of every family, with what makes it differ from its neighbours switched on."""

import numpy as np
import torch

from pathlines.architecture.family import FAMILIES
from pathlines.probing.modules import from_fields, random_module

STACKS = ("t5", "mt5", "umt5", "bart", "mbart", "plbart", "blenderbot", "blenderbot-small")
"""Encoder-decoders, whose encoder is read."""
LATENT = {"kv_lora_rank": 32, "q_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16,
          "num_key_value_heads": 4}  # fmt: skip
DEEP = {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 48, "first_k_dense_replace": 1}
OWN = {
    "opt": {'word_embed_proj_dim': 128},
    "deepseek_v2": {**LATENT, **DEEP},
    "deepseek_v3": {**LATENT, **DEEP, "n_group": 1, "topk_group": 1},
    "minicpm3": LATENT,
    "gpt_oss": {'num_local_experts': 8, 'num_experts_per_tok': 2, 'sliding_window': 5, 'head_dim': 32},
    "mixtral": {'num_local_experts': 8},
    "olmoe": {'num_experts': 8, 'num_experts_per_tok': 2},
    "qwen3_moe": {'num_experts': 8, 'num_experts_per_tok': 2, 'moe_intermediate_size': 48, 'decoder_sparse_step': 2},
    "granitemoe": {'num_local_experts': 8, 'attention_multiplier': 0.25},
    "granitemoeshared": {'num_local_experts': 8, 'shared_intermediate_size': 64, 'attention_multiplier': 0.25},
    "granite": {'attention_multiplier': 0.25, 'residual_multiplier': 0.5, 'embedding_multiplier': 3.0},
    "gemma2": {'head_dim': 32, 'query_pre_attn_scalar': 16, 'sliding_window': 5},
    "gemma3_text": {'head_dim': 32, 'query_pre_attn_scalar': 16, 'sliding_window': 5},
    "vaultgemma": {'head_dim': 32, 'query_pre_attn_scalar': 16, 'sliding_window': 5},
    "mistral": {'sliding_window': 5},
    "qwen2": {'use_sliding_window': True, 'sliding_window': 5, 'max_window_layers': 2},
    "ministral": {'sliding_window': 5, 'head_dim': 32},
    "plbart": {'decoder_attention_heads': 4, 'decoder_layers': 1, 'decoder_ffn_dim': 16},
    "olmo3": {'sliding_window': 5},
    "cohere2": {'sliding_window': 5, 'head_dim': 32},
    "exaone4": {'sliding_window': 5, 'sliding_window_pattern': 4},
    "gpt_neo": {"window_size": 5},
    "gptj": {'rotary_dim': 8},
    "codegen": {'rotary_dim': 8},
    "modernbert": {'local_attention': 8},
    "modernbert-decoder": {'local_attention': 8},
    "esm": {'vocab_size': 64, 'mask_token_id': None, 'pad_token_id': 0},
    "albert": {'embedding_size': 32},
    "electra": {'embedding_size': 32},
    "rembert": {'input_embedding_size': 32},
    "t5": {'d_kv': 32},
    "mt5": {'d_kv': 32},
    "umt5": {'d_kv': 32},
    "nomic_bert": {'head_dim': 32},
    "qwen3": {'head_dim': 32},
    "gemma": {'head_dim': 32},
    "helium": {'head_dim': 32},
    "glm": {'head_dim': 32},
    "glm4": {'head_dim': 32},
    "nemotron": {'head_dim': 32},
    "seed_oss": {'head_dim': 32},
    "hunyuan_v1_dense": {'head_dim': 32},
    "llama": {'head_dim': 32},
    "arcee": {'head_dim': 32},
}  # fmt: skip


def fields_of(name, width=128, layers=4, std=0.07):
    """By the names of the family's row."""
    row = FAMILIES[name].row
    fields = {"model_type": name, row.width: width, row.heads: 4, row.layers: layers, "pad_token_id": 0,
              "bos_token_id": 1, "eos_token_id": 1}  # fmt: skip
    usual = {row.mlp: 2 * width, row.std: std, row.kv_heads: 2, row.context: 64}
    fields |= {field: value for field, value in usual.items() if field and (name, field) != ("esm", row.context)}
    fields |= {row.vocabulary: 64} if row.vocabulary else {"image_size": 32, "patch_size": 8}
    if row.layers == "encoder_layers":
        fields |= {"decoder_attention_heads": 4, "decoder_layers": 1, "decoder_ffn_dim": 16}
    if name == "falcon":
        fields |= {"ffn_hidden_size": 4 * width}
    if name == "gpt_neo":
        fields |= {"attention_types": [[["global", "local"], layers // 2]]}
    return fields | OWN.get(name, {})


def module_of(name, seed=0, **sizes):
    """The library's module, or the encoder of its two."""
    found = random_module(from_fields(fields_of(name, **sizes)), seed)
    return found.encoder if name in STACKS else found


def layers_of(module, depth):
    """The list of layers."""
    lists = [m for m in module.modules() if isinstance(m, torch.nn.ModuleList) and len(m) in (depth, 1)]
    return max(lists, key=len)


def mean_cosines(module, inputs, depth):
    """Between the layers."""
    caught, layers = [], layers_of(module, depth)
    layers = layers[0].albert_layers if hasattr(layers[0], "albert_layers") else layers

    def before(_, args, kwargs):
        if not caught:
            caught.append(args[0] if args else kwargs["hidden_states"])

    def after(_, __, output):
        caught.append(output[0] if isinstance(output, (tuple, list)) else output)

    hooks = [layers[0].register_forward_pre_hook(before, with_kwargs=True)]
    hooks += [layer.register_forward_hook(after) for layer in layers]
    with torch.no_grad():
        module(**inputs)
    for hook in hooks:
        hook.remove()
    found = []
    for hidden in caught:
        h = hidden.numpy().reshape(-1, hidden.shape[-1]).astype(float)
        unit = h / np.linalg.norm(h, axis=1, keepdims=True)
        total = unit.sum(axis=0)
        found.append((total @ total - len(h)) / (len(h) * (len(h) - 1)))
    return np.array(found)
