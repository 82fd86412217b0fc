"""Flows from 5000 samples of a mixture in the plane: ours without training beside zuko's neural spline flow.

    python benchmarks/transport.py

Both see the same samples and are judged by KL(target‖flow) on 10⁵ fresh draws. The spline flow (3 transforms, 64 × 64,
Adam 10⁻³, batches of 512) is stopped where every fifth sample, held out, is likeliest, as ours chooses its sizes.
Seconds are of the processor. Also: a known density to KL ≤ 0.02, the round trip, a million points through a thousand
pieces, and POT's exact plan beside our assignment.
"""

import time

import numpy as np

import pathlines as pl

LAW = pl.transport.GaussianMixture(
    [0.35, 0.35, 0.3],
    [[-1.5, 0], [1.2, 1], [0.5, -1.8]],
    [[[0.5, 0.2], [0.2, 0.4]], [[0.4, -0.15], [-0.15, 0.3]], [[0.6, 0], [0, 0.2]]],
)
FRESH = LAW.sample(100_000, seed=99)
KNOWN = LAW.log_prob(FRESH)


def timed(work):
    began = time.process_time()
    return work(), time.process_time() - began


def spline_flow(samples, steps=1500, every=100):
    """zuko's flow with the best held-out likelihood of its training."""
    import torch
    import zuko

    torch.manual_seed(0)
    apart = np.arange(len(samples)) % 5 == 0
    data, held = (torch.tensor(samples[part], dtype=torch.float32) for part in (~apart, apart))
    flow = zuko.flows.NSF(features=2, transforms=3, hidden_features=(64, 64))
    optimiser, best, kept = torch.optim.Adam(flow.parameters(), lr=1e-3), -np.inf, None
    for step in range(steps):
        batch = data[torch.randint(len(data), (512,))]
        loss = -flow().log_prob(batch).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if (step + 1) % every == 0:
            with torch.no_grad():
                score = float(flow().log_prob(held).mean())
            if score > best:
                best, kept = score, {k: v.clone() for k, v in flow.state_dict().items()}
    flow.load_state_dict(kept)
    with torch.no_grad():
        logs = flow().log_prob(torch.tensor(FRESH, dtype=torch.float32)).numpy()
        x = torch.tensor(FRESH[:1000], dtype=torch.float32)
        trip = float((flow().transform.inv(flow().transform(x)) - x).abs().max())
    return float(np.mean(KNOWN - logs)), trip


def ours(samples):
    flow = pl.TriangularFlow().fit(samples)
    return float(np.mean(KNOWN - flow.log_prob(FRESH))), flow.report_.round_trip


def main():
    for seed in (1, 2):
        samples = LAW.sample(5000, seed=seed)
        for name, work in (("TriangularFlow", ours), ("zuko NSF", spline_flow)):
            (kl, trip), seconds = timed(lambda work=work, samples=samples: work(samples))
            print(
                f"5000 samples, seed {seed}: {name:15s} KL {kl:.4f}  round trip {trip:.1e}  {seconds:6.2f} s",
                flush=True,
            )
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
