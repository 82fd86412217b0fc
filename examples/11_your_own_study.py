"""A study of your own model in ten lines: where in (n, β) does it gather? Interrupted, resumed, drawn, in pandas."""

import signal
from typing import Any

import numpy as np

import pathlines as pl
from pathlines.draw import save_figure, study_figure

pl.enable_float64()


def leaning(beta: float, lean: float = 0.3) -> pl.Model:  # a model of one's own: values that turn as well as attract
    turn = np.array([[np.cos(lean), -np.sin(lean)], [np.sin(lean), np.cos(lean)]])
    return pl.SelfAttention(beta, weights=pl.weights.FixedWeights(turn))


axes = {"beta": "0.2:10:50", "n": "8:32:4"}  # 200 points; "8:128:log", "0:1:random:50", ... are other axes
study = pl.study(leaning, axes, record=["cluster_count", "mean_overlap"], until=4.0, d=2)
print(study.predict())  # runs, programs, seconds, memory: before anything starts


def impatient(standing: Any) -> None:  # as if somebody pressed Ctrl-C after a third of it
    if standing.computed >= 50:
        signal.raise_signal(signal.SIGINT)


try:
    study.run(watch=impatient)
except KeyboardInterrupt:
    print("interrupted:", int((study.collect().status == 0).sum()), "of 200 runs are kept")

last = []
data = study.run(watch=last.append)  # the same line again: it goes on where it stopped
print(f"resumed: {last[-1].recalled} from the store, {last[-1].computed} computed")
print(data)
save_figure(study_figure(data), "study.pdf")
table = data.to_dataframe().reset_index()  # pandas, one row for each run
print(table.groupby("n")["cluster_count"].mean().round(2).to_dict())
