"""Theory of transformers with fresh random weights in every layer: collapse laws, reductions and regimes."""
