"""Flows from 5000 samples of a mixture in the plane: ours beside zuko's neural spline flow, tuned.

    python benchmarks/transport.py

Both see the same samples, of seeds that nothing was developed on (101, 102, 103), and are judged by KL(target‖flow) on
10⁵ fresh draws. The spline flow (3 transforms, Adam, batches of 512, 1200 steps) is trained for each learning rate and
width of a small grid; rate, width and step are those where every fifth sample, held out, is likeliest, as ours chooses
its sizes. Seconds are of the processor, on one thread: of the best configuration, and of the whole grid. Also: a known
density to KL ≤ 0.02, the round trip, a million points through a thousand pieces, and POT's exact plan beside our
assignment.
"""

import time

import numpy as np

import pathlines as pl

LAW = pl.transport.GaussianMixture(
    [0.35, 0.35, 0.3],
    [[-1.5, 0], [1.2, 1], [0.5, -1.8]],
    [[[0.5, 0.2], [0.2, 0.4]], [[0.4, -0.15], [-0.15, 0.3]], [[0.6, 0], [0, 0.2]]],
)
SEEDS = (101, 102, 103)
FRESH = LAW.sample(100_000, seed=999)
KNOWN = LAW.log_prob(FRESH)
RATES, WIDTHS, STEPS, EVERY = (1e-3, 4e-3), (32, 64, 128), 1200, 50


def timed(work):
    began = time.process_time()
    return work(), time.process_time() - began


def trained(samples, rate, width):
    """A spline flow at its best step, and the held-out log-density there."""
    import torch
    import zuko

    torch.set_num_threads(1)
    torch.manual_seed(0)
    apart = np.arange(len(samples)) % 5 == 0
    data, held = (torch.tensor(samples[part], dtype=torch.float32) for part in (~apart, apart))
    flow = zuko.flows.NSF(features=2, transforms=3, hidden_features=(width, width))
    optimiser, best, kept = torch.optim.Adam(flow.parameters(), lr=rate), -np.inf, None
    for step in range(STEPS):
        loss = -flow().log_prob(data[torch.randint(len(data), (512,))]).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if (step + 1) % EVERY == 0:
            with torch.no_grad():
                score = float(flow().log_prob(held).mean())
            if score > best:
                best, kept, at = score, {k: v.clone() for k, v in flow.state_dict().items()}, step + 1
    flow.load_state_dict(kept)
    return flow, best, at


def spline_flow(samples):
    """The best of the grid by held-out likelihood: its words, KL, round trip, its seconds and those of the grid."""
    import torch

    found = []
    for rate in RATES:
        for width in WIDTHS:
            (flow, score, at), seconds = timed(lambda rate=rate, width=width: trained(samples, rate, width))
            found.append((score, seconds, f"zuko NSF {width}×{width}, {rate:g}, step {at}", flow))
    score, seconds, words, flow = max(found, key=lambda f: f[0])
    with torch.no_grad():
        logs = flow().log_prob(torch.tensor(FRESH, dtype=torch.float32)).numpy()
        x = torch.tensor(FRESH[:1000], dtype=torch.float32)
        trip = float((flow().transform.inv(flow().transform(x)) - x).abs().max())
    return words, float(np.mean(KNOWN - logs)), trip, seconds, sum(f[1] for f in found)


def ours(name, estimator, samples):
    flow, seconds = timed(lambda: estimator.fit(samples))
    return name, float(np.mean(KNOWN - flow.log_prob(FRESH))), flow.report_.round_trip, seconds, seconds


def samples_table():
    """KL from 5000 samples, for each seed."""
    print("| seed | flow | KL(target‖flow) | round trip | s | s, with tuning |\n|---|---|---|---|---|---|", flush=True)
    for seed in SEEDS:
        samples = LAW.sample(5000, seed=seed)
        rows = [
            ours("TriangularFlow()", pl.TriangularFlow(), samples),
            ours("RidgeFlow()", pl.RidgeFlow(), samples),
            ours("RidgeFlow(finetune=200)", pl.RidgeFlow(finetune=200), samples),
            spline_flow(samples),
        ]
        for name, kl, trip, seconds, total in rows:
            print(f"| {seed} | {name} | {kl:.4f} | {trip:.0e} | {seconds:.2f} | {total:.2f} |", flush=True)


def main():
    samples_table()
    known, seconds = timed(lambda: pl.TriangularFlow(error=0.02).fit_density(LAW))
    said = known.report_
    print(f"known density: KL {said.kl:.4f} ± {said.kl_error:.4f}, {said.pieces} pieces, {seconds:.2f} s", flush=True)
    flow = pl.TriangularFlow(bins=32, knots=26).fit_density(LAW).schedule_
    points = np.random.default_rng(0).standard_normal((1_000_000, 2))
    flow.forward(points[:10])
    _, seconds = timed(lambda: flow.forward(points))
    print(f"10⁶ points through {flow.count} pieces in {flow.runs} runs: {seconds:.2f} s")
    from pathlines.observable.plans import pot

    one, other = points[:1000], FRESH[:1000]
    ot = pot()
    exact, seconds = timed(lambda: ot.emd2([], [], ot.dist(one, other)))
    found, mine = timed(lambda: pl.observable.cloud_distance(one, other).value ** 2)
    print(f"W₂² of 1000 points: POT {exact:.6f} in {seconds:.2f} s, assignment {found:.6f} in {mine:.2f} s")


if __name__ == "__main__":
    main()
