"""One flow over four (forced) devices, and over two processes: equal to one device to rounding.

This file is also the program that they run.
"""

import json
import os
import socket
import subprocess
import sys

import jax
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, FormError

CASES = {
    "ring": (3, 16, {"beta": 4.0, "summation": "dense"}),
    "padded ring": (3, 13, {"beta": 4.0, "summation": "dense"}),
    "harmonics": (2, 16, {"beta": 3.0, "summation": "spectral"}),
    "causal": (4, 16, {"beta": 2.0, "mask": "causal"}),
}


def overlaps(name, devices):
    d, n, setting = CASES[name]
    tokens = pl.Sphere(d).uniform(jax.random.key(1), n)
    run = pl.flow(
        pl.SelfAttention(**setting), tokens, times=[0.5, 1.0], record="mean_overlap", form="tokens", devices=devices
    )
    return run["mean_overlap"].values.tolist(), run.forms[0].reason


def main(names, port=None, number=0):
    if port is not None:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=int(number))
    jax.config.update("jax_enable_x64", True)
    print(json.dumps({name: overlaps(name, len(jax.devices())) for name in names.split(",")}))


def started(*words, devices=1):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    environment = {**os.environ, "XLA_FLAGS": flags}
    return subprocess.Popen([sys.executable, __file__, *words], env=environment, stdout=subprocess.PIPE, text=True)


def answers(process):
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 0
    return json.loads(out.splitlines()[-1])


def assert_equal(found, names, count):
    for name in names:
        values, reason = found[name]
        assert f"rows over {count} devices" in reason
        assert ("harmonics" if name == "harmonics" else "ring") in reason
        np.testing.assert_allclose(values, overlaps(name, None)[0], rtol=1e-12)


@pytest.mark.slow
def test_four_devices_have_the_numbers_of_one():
    names = ["padded ring", "harmonics"]
    assert_equal(answers(started(",".join(names), devices=4)), names, 4)


@pytest.mark.slow
def test_four_devices_have_the_numbers_of_one_in_all_cases():
    assert_equal(answers(started(",".join(CASES), devices=4)), CASES, 4)


@pytest.mark.slow
def test_two_processes_have_the_numbers_of_one():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    both = [started("ring", port, str(k)) for k in range(2)]
    for found in [answers(process) for process in both]:
        assert_equal(found, ["ring"], 2)


@pytest.mark.parametrize(
    ("devices", "changes", "words"),
    [
        (99, {}, "must be at most"),
        (0, {}, "`devices`"),
        ("all", {}, "must be a number, devices or a mesh"),
        ([], {}, "must be a number, devices or a mesh"),
        (1, {"form": "span"}, "be 'tokens' over several devices"),
    ],
)
def test_what_is_refused(devices, changes, words):
    with pytest.raises(ArgumentError, match=words):
        pl.flow(pl.SelfAttention(1.0), pl.Sphere(3).simplex(3), until=0.1, devices=devices, **changes)


def test_models_whose_rows_cannot_be_shared_out_say_so():
    with pytest.raises(FormError, match="serves SelfAttention"):
        pl.flow(pl.SelfAttention(1.0, attention="l2"), pl.Sphere(3).simplex(3), until=0.1, devices=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
