"""A study of your own model in ten lines: where in (n, β) does it gather? 200 runs, drawn, and a table of pandas.

Press Ctrl-C and start it again: it goes on where it stopped. The model's values turn as well as attract; other axes are
"8:128:log", "0:1:random:50", [1, 2, 5], and `on="processes"` or `on="dask"` runs it elsewhere, unchanged.
"""

import numpy as np

import pathlines as pl


def leaning(beta: float, lean: float = 0.3) -> pl.Model:
    turn = np.array([[np.cos(lean), -np.sin(lean)], [np.sin(lean), np.cos(lean)]])
    return pl.SelfAttention(beta, weights=pl.weights.FixedWeights(turn))


study = pl.study(leaning, {"beta": "0.2:10:50", "n": "8:32:4"}, record="cluster_count", until=4.0, d=2, dtype="float32")
print(study.predict())  # runs, programs, seconds, memory, and how many runs are kept already: before anything starts
data = study.run(out="study.nc")
pl.draw.save_figure(pl.draw.study_figure(data), "study.pdf")
print(data.to_dataframe().groupby("n")["cluster_count"].mean())
