"""Configurations as public checkpoints carry them, labels and leftovers included."""

_TOKENS = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
_BASE = {
    "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768,
    "initializer_range": 0.02, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12,
}  # fmt: skip
_DECODER = {
    "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "initializer_range": 0.02,
    "torch_dtype": "bfloat16", "transformers_version": "4.45.0", "use_cache": True,
}  # fmt: skip

PUBLIC = {
    "bert-base-uncased": {
        **_BASE, "architectures": ["BertForMaskedLM"], "gradient_checkpointing": False, "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512, "model_type": "bert", "pad_token_id": 0,
        "position_embedding_type": "absolute", "transformers_version": "4.6.0", "type_vocab_size": 2,
        "use_cache": True, "vocab_size": 30522,
    },
    "bert-base-multilingual-cased": {
        **_BASE, "architectures": ["BertForMaskedLM"], "directionality": "bidi", "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512, "model_type": "bert", "pad_token_id": 0, "pooler_fc_size": 768,
        "pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3, "pooler_size_per_head": 128,
        "pooler_type": "first_token_transform", "type_vocab_size": 2, "vocab_size": 119547,
    },
    "roberta-base": {
        **_BASE, **_TOKENS, "architectures": ["RobertaForMaskedLM"], "layer_norm_eps": 1e-05,
        "max_position_embeddings": 514, "model_type": "roberta", "type_vocab_size": 1, "vocab_size": 50265,
    },
    "xlm-roberta-base": {
        **_BASE, **_TOKENS, "architectures": ["XLMRobertaForMaskedLM"], "layer_norm_eps": 1e-05,
        "max_position_embeddings": 514, "model_type": "xlm-roberta", "output_past": True,
        "position_embedding_type": "absolute", "type_vocab_size": 1, "use_cache": True, "vocab_size": 250002,
    },
    "mpnet-base": {
        **_BASE, **_TOKENS, "architectures": ["MPNetForMaskedLM"], "layer_norm_eps": 1e-05,
        "max_position_embeddings": 514, "model_type": "mpnet", "relative_attention_num_buckets": 32,
        "vocab_size": 30527,
    },
    "albert-base-v2": {
        **_BASE, "architectures": ["AlbertForMaskedLM"], "attention_probs_dropout_prob": 0, "bos_token_id": 2,
        "classifier_dropout_prob": 0.1, "down_scale_factor": 1, "embedding_size": 128, "eos_token_id": 3,
        "gap_size": 0, "hidden_act": "gelu_new", "hidden_dropout_prob": 0, "inner_group_num": 1,
        "layer_norm_eps": 1e-12, "layers_to_keep": [], "max_position_embeddings": 512, "model_type": "albert",
        "net_structure_type": 0, "num_hidden_groups": 1, "num_memory_blocks": 0, "pad_token_id": 0,
        "type_vocab_size": 2, "vocab_size": 30000,
    },
    "rxnmapper": {
        "architectures": ["AlbertForMaskedLM"], "attention_probs_dropout_prob": 0.1, "bos_token_id": 0,
        "classifier_dropout_prob": 0.1, "do_sample": False, "down_scale_factor": 1, "embedding_size": 128,
        "eos_token_ids": 0, "finetuning_task": None, "gap_size": 0, "hidden_act": "gelu", "hidden_size": 256,
        "id2label": {"0": "LABEL_0"}, "initializer_range": 0.02, "inner_group_num": 1, "intermediate_size": 512,
        "is_decoder": False, "layer_norm_eps": 1e-12, "length_penalty": 1.0, "max_length": 20,
        "max_position_embeddings": 512, "model_type": "albert", "num_attention_heads": 8, "num_beams": 1,
        "num_hidden_groups": 1, "num_hidden_layers": 12, "num_labels": 2, "num_memory_blocks": 0,
        "num_return_sequences": 1, "output_past": True, "pruned_heads": {}, "repetition_penalty": 1.0,
        "temperature": 1.0, "top_k": 50, "top_p": 1.0, "torchscript": False, "type_vocab_size": 2,
        "use_bfloat16": False, "vocab_size": 591,
    },
    "gpt2": {
        "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
        "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_inner": None,
        "n_layer": 12, "n_positions": 1024, "reorder_and_upcast_attn": False, "resid_pdrop": 0.1,
        "scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True, "summary_activation": None,
        "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index",
        "summary_use_proj": True, "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
        "vocab_size": 50257,
    },
    "pythia-160m": {
        "architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "gelu",
        "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-05,
        "max_position_embeddings": 2048, "model_type": "gpt_neox", "num_attention_heads": 12, "num_hidden_layers": 12,
        "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": False, "torch_dtype": "float16",
        "transformers_version": "4.24.0", "use_cache": True, "use_parallel_residual": True, "vocab_size": 50304,
    },
    "Llama-3.2-1B": {
        **_DECODER, "architectures": ["LlamaForCausalLM"], "attention_bias": False, "head_dim": 64,
        "hidden_size": 2048, "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": False,
        "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
        "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 32.0, "rope_type": "llama3"},
        "rope_theta": 500000.0, "tie_word_embeddings": True, "vocab_size": 128256,
    },
    "SmolLM2-135M": {
        **_DECODER, "architectures": ["LlamaForCausalLM"], "attention_bias": False, "hidden_size": 576,
        "initializer_range": 0.041666666666666664, "intermediate_size": 1536, "is_llama_config": True,
        "max_position_embeddings": 8192, "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30,
        "num_key_value_heads": 3, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": False,
        "rope_scaling": None, "rope_theta": 100000, "tie_word_embeddings": True, "vocab_size": 49152,
    },
    "Mistral-7B": {
        **_DECODER, "architectures": ["MistralForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
        "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
        "sliding_window": 4096, "tie_word_embeddings": False, "vocab_size": 32000,
    },
    "Qwen2.5-0.5B": {
        **_DECODER, "architectures": ["Qwen2ForCausalLM"], "hidden_size": 896, "intermediate_size": 4864,
        "max_position_embeddings": 32768, "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14,
        "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
        "sliding_window": 32768, "tie_word_embeddings": True, "use_mrope": False, "use_sliding_window": False,
        "vocab_size": 151936,
    },
    "Qwen3-0.6B": {
        **_DECODER, "architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "head_dim": 128,
        "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28,
        "model_type": "qwen3", "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
        "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 1000000, "sliding_window": None,
        "tie_word_embeddings": True, "use_sliding_window": False, "vocab_size": 151936,
    },
    "gemma-2b": {
        **_DECODER, "architectures": ["GemmaForCausalLM"], "attention_bias": False, "head_dim": 256,
        "hidden_act": "gelu", "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2048,
        "intermediate_size": 16384, "max_position_embeddings": 8192, "model_type": "gemma", "num_attention_heads": 8,
        "num_hidden_layers": 18, "num_key_value_heads": 1, "rms_norm_eps": 1e-06, "rope_scaling": None,
        "rope_theta": 10000.0, "vocab_size": 256000,
    },
    "gemma-2-2b": {
        **_DECODER, "architectures": ["Gemma2ForCausalLM"], "attention_bias": False, "attn_logit_softcapping": 50.0,
        "cache_implementation": "hybrid", "final_logit_softcapping": 30.0, "head_dim": 256,
        "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2304,
        "intermediate_size": 9216, "max_position_embeddings": 8192, "model_type": "gemma2", "num_attention_heads": 8,
        "num_hidden_layers": 26, "num_key_value_heads": 4, "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06,
        "rope_theta": 10000.0, "sliding_window": 4096, "vocab_size": 256000,
    },
    "gemma-3-270m": {
        **_DECODER, "_sliding_window_pattern": 6, "architectures": ["Gemma3ForCausalLM"], "attention_bias": False,
        "attn_logit_softcapping": None, "final_logit_softcapping": None, "head_dim": 256,
        "hidden_activation": "gelu_pytorch_tanh", "hidden_act": None, "hidden_size": 640, "intermediate_size": 2048,
        "layer_types": ["sliding_attention", "full_attention"] * 9, "max_position_embeddings": 32768,
        "model_type": "gemma3_text", "num_attention_heads": 4, "num_hidden_layers": 18, "num_key_value_heads": 1,
        "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000.0, "rope_scaling": None,
        "rope_theta": 1000000.0, "sliding_window": 512, "use_bidirectional_attention": False, "vocab_size": 262144,
    },
    "vit-base-patch16-224": {
        **_BASE, "architectures": ["ViTForImageClassification"], "attention_probs_dropout_prob": 0.0,
        "encoder_stride": 16, "hidden_dropout_prob": 0.0, "id2label": {"0": "tench"}, "image_size": 224,
        "label2id": {"tench": 0}, "layer_norm_eps": 1e-12, "model_type": "vit", "num_channels": 3, "patch_size": 16,
        "pooler_act": "tanh", "pooler_output_size": 768, "qkv_bias": True, "transformers_version": "4.13.0",
    },
}  # fmt: skip
