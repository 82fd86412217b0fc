"""Lost in the middle: the token that a prompt forgets, in theory and in simulation."""

import jax
import numpy as np

import pathlines as pl
from pathlines.draw.retrieval_figure import retrieval_figure
from pathlines.integrate.retrieval import retrieval
from pathlines.limit.causal.forecast import retrieval_forecast
from pathlines.model.causal.decoder import CausalDecoder

pl.enable_float64()
theory = retrieval_forecast(beta=1.0, slope=2.0, vocabulary=8, depth=1.0, n=256)
for sentence in theory.sentences:
    print(sentence)

decoder = CausalDecoder(beta=1.0, mask=2.0)  # ALiBi with slope 2
measured = retrieval(decoder, n=256, depth=1.0, key=jax.random.key(0), prompts=2000)
middle = slice(25, 230)
apart = (measured["profile"].values - np.asarray(theory.profile))[middle] / np.asarray(theory.profile)[middle]
print(f"simulation over paths of attention, mean over the middle: {1 + apart.mean():.3f}")
retrieval_figure(theory, measured).savefig("lost_in_the_middle.pdf")
