"""Malformed command lines, made from one good line for each verb: one word is spoilt at a time.

Verbs and options are read off the program itself, so that a new one is covered; words that somebody could mean are left
out by name. Files that a verb reads are spoilt by content.
"""

import json
import math
from pathlib import Path

from typer.main import get_command

from pathlines.cli.program import app

GOOD = {
    "run": "run sa --n 4 --until 0.1",
    "view": "view --export {folder}/v.html --n 4 --until 0.1 --frames 3",
    "verify": "verify clustering/CL-43",
    "figure": "figure clustering/precision --figure {folder}/p.pdf",
    "list": "list papers",
    "show": "show sa",
    "cite": "cite sa",
    "advise": "advise 64 2 2 32 128 0.02 --n 4",
    "animate": "animate metastability/life-of-clusters --animate {folder}/film.gif",
    "bench": "bench --quick",
    "collapse": "collapse --n 4 --d 8 --scheme post",
    "context": "context --query-norm 1.2",
    "gaussian": "gaussian blow-up",
    "landscape": "landscape --beta 4",
    "misassignment": "misassignment --simulate",
    "modes": "modes --n 10 --beta 4 --runs 2",
    "modes-of": "modes-of {folder}/no-such-matrix.npy",
    "patterns": "patterns --beta 9",
    "retrieval": "retrieval --n 16 --mask window:4 --prompts 64",
    "probe": "probe {folder}/nowhere",
    "regime": "regime --layers 100",
    "staircase": "staircase --angles 0,1,2.5",
    "sweep": "sweep sa --axis beta=1,2 --n 4 --until 0.1 --record mean_overlap",
    "synchronise": "synchronise --d 8",
    "tradeoff": "tradeoff --n 8",
    "transport": "transport check {folder}/no-such-file.json",
}
MEANT = {
    ("misassignment", "--mean-angle"): {"-1"},
    ("retrieval", "--seed"): {"-1"}, ("retrieval", "--slope"): {"-1"},
    ("run", "--seed"): {"-1"}, ("sweep", "--seed"): {"-1"}, ("sweep", "--record"): {""}, ("sweep", "--times"): {""},
    ("sweep", "--threshold"): {""},
    ("sweep", "--store"): {"no-such-name", "1,,2", "nan"},
    ("collapse", "--seed"): {"-1"}, ("advise", "--seed"): {"-1"},
    ("synchronise", "--seed"): {"-1"}, ("context", "--seed"): {"-1"},
    ("run", "--record"): {""}, ("bench", "--only"): {""},
    ("figure", "--figure"): {"{folder}", "{folder}/x"}, ("run", "--animate"): {"{folder}"},
    ("animate", "--animate"): {"{folder}"}, ("advise", "--target-cosine"): {"-1"},
}  # fmt: skip
"""Spoilt words that are fine after all: for these options they have a meaning."""
FOREIGN = {"--load", "--help", "--debug", "--version"}
WRITTEN = {"--out", "--figure", "--animate", "--report", "--page", "--table"}
DRAWN = {"--figure"}
READ = {"--tokens", "--numbers", "--text", "--ids"}
HUGE = [
    "run sa --n 100000000",
    "run sa --d 1000000000",
    "run sa --n 4 --layers 1000000000000",
    "run sa --n 4 --until 0.1 --runs 1000000000000",
    "run random-transformer --n 4 --layers 1000000000000",
    "collapse --n 100000000 --runs 8",
    "collapse --d 1000000000 --runs 8",
    "collapse --runs 1000000000",
    "collapse --delta 1e-9 --step 1e-12 --max-layers 1000000000000",
    "patterns --beta 1e12",
    "patterns --beta 1e200",
    "modes --n 1000000000000",
    "modes --runs 1000000000000",
    "staircase --n 1000000",
    "staircase --n 100 --d 1000000000",
    "landscape --beta 1e12",
    "landscape --neurons {folder}/many-neurons.toml",
    "gaussian {folder}/wide.json",
    "probe {folder}/nowhere --seeds 1000000000",
    "probe {folder}/nowhere --layers 1000000000000",
    "verify clustering/CL-43 --set n1=1000000000000000000",
    "verify homogenized/C09 --set n=1000000000",
    "figure clustering/precision --n 1000000000 --figure {folder}/p.pdf",
    "advise 1000000000 12 12 1024 3072 0.02",
    "advise 768 12 1000000000 1024 3072 0.02",
    "advise 768 12 12 1024 3072 0.02 --layers 1000000000",
    "advise 768 12 12 1024 3072 0.02 --n 1000000000",
    "advise 768 12 12 1024 3072 0.02 --simulate --seeds 1000000000",
    "synchronise --simulate --runs 100000000000",
    "context --n 100000000000 --simulate",
    "tradeoff --n 1000000000000000000",
    "gaussian blow-up --until 1e300",
]
"""Sizes that no machine can afford: refused by predicted cost, with the limit named."""


def huge_files(folder):
    """Well-formed problems that are too large."""
    many = [0.001 * k for k in range(4000)]
    (folder / "many-neurons.toml").write_text(f"angles = {many}\nstrengths = {many}\n")
    (folder / "wide.json").write_text(json.dumps({"value": [[float(i == j) for j in range(300)] for i in range(300)]}))


def option_words(verb, option):
    """Words that nobody can mean for an option of a verb."""
    name, kind = option.opts[0], option.type_descriptor.annotation
    if option.is_flag or name in FOREIGN:
        return []
    if name in WRITTEN and kind is Path:
        return ["/proc/nowhere/x.pdf", "{folder}"] + (["{folder}/x.xyz", "{folder}/x"] if name in DRAWN else [])
    if name in READ:
        return ["{folder}/missing.txt", "{folder}", *(f"{{folder}}/{f}" for f in hostile_texts())]
    if "set" in name:
        return ["", "=3", "n", "no-such-name=3", "n==", "=="]
    if kind is int:
        return ["many", "1.5", "nan", "", "-1", "1e3"]
    if kind is float:
        return ["many", "nan", "", "-inf", "-1"]
    return ["no-such-name", "", "1,,2", "nan", "\x1b[31m"]


def hostile_texts():
    """File names with contents that are not what any verb reads."""
    return {
        "empty.txt": b"",
        "junk.txt": bytes(range(256)),
        "words.csv": b"a,b\nc,d\n",
        "nan.txt": b"nan\n",
        "endless.txt": b"1\ninf\n",
        "empty.npy": b"",
        "junk.npy": b"\x93NUMPY\x01\x00" + bytes(range(200)),
        "header.npy": b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (99,), }",
        "broken.toml": b"strengths = [1, 2",
        "list.json": b"[1, 2]",
    }


def hostile_problems():
    """Contents of files for ``gaussian``, ``landscape`` and ``advise``, by the words that read them."""
    eye = [[1.0, 0.0], [0.0, 1.0]]
    matrices = [
        "", "[]", "{", "5", "null", '"text"', '{"value": "no"}', '{"value": [[1, 2], [3]]}', '{"value": []}',
        '{"value": null}', '{"value": [[1e400]]}', '{"value": [[NaN]]}', '{"value": [[[1]]]}', '{"valu": [[1]]}',
        '{"query": [[1]]}', json.dumps({"value": eye, "covariance": [[1, 0], [0, -1]]}),
        json.dumps({"value": eye, "covariance": [[1, 2], [0, 1]]}), json.dumps({"value": eye, "query": [1, 2, 3]}),
        json.dumps({"value": eye, "kind": 5}), json.dumps({"value": eye, "kind": "no"}),
        json.dumps({"value": eye, "scale": "big"}), json.dumps({"value": eye, "scale": None}),
        json.dumps({"value": eye, "eps": -1, "kind": "sinkhorn"}), json.dumps({"value": eye, "score": eye, "key": eye}),
        json.dumps({"value": eye, "prefactor": 3, "kind": "sinkhorn"}), json.dumps({"value": eye, "scale": 1e400}),
    ]  # fmt: skip
    yield from (("gaussian {file}", "json", text) for text in matrices)
    yield from (("gaussian {file}", "toml", text) for text in ("value = ", "value = 'x'", "[value]\na=1", "\x00"))
    neurons = [
        "", "strengths = 1", "strengths = [1]", "directions = [[1, 0]]", "strengths = ['a']\nangles = [0]",
        "strengths = [1]\nangles = [0, 1]", "strengths = [nan]\nangles = [0]", "strengths = []\nangles = []",
        "strengths = [1]\nangles = 'x'", "strengths = [1]\ndirections = [[0, 0]]", "strengths = [1]\ndirections = [1]",
        "strengths = [1]\nangles = [0]\nactivation = 'no'", "strengths = [1]\nangles = [0]\nbiases = [1, 2]",
        "strengths = [1]\nangles = [0]\nbiases = ['x']", "strengths = [1]\nangles = [0]\nactivation = 3",
        "strengths = [[1], [2, 3]]\nangles = [0]", "strengths = [1]\nangles = [0]\nother = 1", "= 3", "\x00",
    ]  # fmt: skip
    yield from (("landscape --neurons {file}", "toml", text) for text in neurons)
    gpt2 = {"model_type": "gpt2", "n_embd": 64, "n_head": 2, "n_layer": 2, "n_positions": 32, "vocab_size": 100}
    llama = {
        "model_type": "llama", "hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 2,
        "intermediate_size": 128, "max_position_embeddings": 64, "vocab_size": 100,
    }  # fmt: skip
    bad = [None, "64", -1, 0, 1.5, math.nan, [64], {}, True, 10**12]
    for base in (gpt2, llama):
        for field in list(base)[1:4]:
            for value in bad:
                yield "advise {file} --n 4", "json", json.dumps({**base, field: value})
    scaling = [
        {"rope_type": "yarn", "factor": -1}, {"rope_type": "yarn", "factor": "two"}, {"rope_type": "yarn", "factor": 0},
        {"rope_type": "yarn", "factor": math.nan}, 5, [1], "yarn",
        {"rope_type": 5}, {"rope_type": "linear", "factor": None}, {"type": "yarn", "factor": [2]},
    ]  # fmt: skip
    yield from (("advise {file} --n 4", "json", json.dumps({**llama, "rope_scaling": s})) for s in scaling)
    others = ["", "[]", "5", "null", "{", '{"model_type": "no-such"}', '{"model_type": 5}', "{}", '{"a": 1}', "\x00"]
    yield from (("advise {file} --n 4", "json", text) for text in others)
    tables = ["", "width = 'x'", "width = 64", "width = -1\nheads = 1\nlayers = 1", "= 1", "width = [1]\nheads = 1"]
    yield from (("advise {file} --n 4", "toml", text) for text in tables)
    tables = ["", "a,b\nc,d\n", "1,2\n3,nan\n" * 20, "1,1\n" * 40, "1,2\n3\n4,5,6\n", "1,2\n" * 3, "\x00\x01"]
    yield from (("transport fit {file} --out {file}.json", "csv", text) for text in tables)
    rows = "\n".join(f"{k * k % 37},{k * 7 % 41}" for k in range(60))
    spoilt = (
        "--pieces many",
        "--pieces 1",
        "--error -1",
        "--error nan",
        "--seed -1",
        "--pieces 99 --error 1",
        "--to x",
    )
    yield from ((f"transport fit {{file}} --out {{file}}.json {words}", "csv", rows) for words in spoilt)
    piece = '{"w": [1], "a": [1], "b": 0, "t": 1}'
    flow = f'{{"kind": "relu-euclid", "d": 1, "pieces": [{piece}]}}'
    flows = [
        "", "[]", "{}", flow[:-2], flow.replace("relu", "no"), flow.replace('"b": 0, ', ""),
        flow.replace("0", "1e999"), flow.replace("[1]", "[1, 2]"), flow.replace('"d": 1', '"d": 0'),
        flow.replace('"t": 1', '"t": -1'),
    ]  # fmt: skip
    yield from (("transport sample {file}", "json", text) for text in flows)
    yield from (
        (f"transport sample {{file}} {w}", "json", flow) for w in ("-n 0", "-n 99999999999", "--given 1", "-n x")
    )
    tokens = ["", "a b", "1.5", "-1 2", "1 2 999999999999999999999", "nan", "1,,x", "5"]
    yield from (("advise 64 2 2 32 128 0.02 --ids {file}", "txt", text) for text in tokens)
    matrices = ["", "x", "1 2\n3", "1 2\n3 4", "1 nan\nnan 1", "1", "1e999 0\n0 1", "\x00"]
    yield from (("modes-of {file} --n 4", "txt", text) for text in matrices)
    yield from (
        (f"modes-of {{file}} {words}", "txt", "1 0\n0 2")
        for words in ("--n 0", "--n 1000000000", "--beta -1", "--beta nan", "--starts -1", "--starts 0 --figure x.pdf")
    )
    yield from (("modes --numbers {file} --beta 2", "npy", text) for text in ("", "x", "\x93NUMPY"))
    yield from (
        (f"{verb} {{file}}", "nc", text) for verb in ("show", "cite") for text in ("", "x", "\x89HDF\r\n\x1a\n")
    )


def command_lines(folder):
    """Every malformed command line; the files it reads are written into ``folder``."""
    for name, content in hostile_texts().items():
        (folder / name).write_bytes(content)
    huge_files(folder)
    verbs = get_command(app).commands
    for verb, command in verbs.items():
        good = GOOD[verb].format(folder=folder).split()
        yield [*good, "--no-such-option"]
        yield [*good, *("one-word-too-many" for _ in range(3))] if verb not in MANY else [verb, "no-such-name"]
        for option in command.params:
            if option.param_type_name != "option":
                continue
            for word in option_words(verb, option):
                if word not in MEANT.get((verb, option.opts[0]), set()):
                    yield [*good, option.opts[0], word.format(folder=folder)]
    yield from ([w.format(folder=folder) for w in line.split()] for line in HUGE)
    for number, (line, kind, text) in enumerate(hostile_problems()):
        file = folder / f"problem{number}.{kind}"
        file.write_text(text, encoding="latin-1")
        yield line.format(file=file).split()
    yield from setting_lines()


MANY = {"verify", "figure", "cite", "advise"}
"""Verbs that take any number of names."""


PARAMETERS = [("--beta", word) for word in ("NaN", "-Infinity", "no-such-word", "{}", "[1, 2]")] + [("--no-such", "1")]
"""Options of a model, spoilt."""


def setting_lines():
    """Settings of models, claims and figures that are not what they should be."""
    from pathlines.model import MODELS

    values = ["NaN", "Infinity", "no-such-word", "[1]", "{}", "null"]
    for model in ("sa", "usa", "pre-ln", "rescaled", "random-transformer", "gaussian-softmax", "sinkhorn", "mix-ln"):
        if model not in list(MODELS):
            continue
        for option, word in PARAMETERS:
            yield ["run", model, "--n", "4", "--until", "0.1", option, word]
    for value in values:
        yield ["verify", "clustering/CL-43", "--set", f"n={value}"]
        yield ["verify", "clustering/CL-43", "--set", f"no-such-name={value}"]
    for line in ("figure clustering/precision", "animate metastability/life-of-clusters"):
        for value in values:
            yield [*line.split(), "--n", value]
            yield [*line.split(), "--no-such-name", value]
    for value in values:
        for option in ("--width", "--placement", "--deviations-embedding"):
            yield ["advise", "64", "2", "2", "32", "128", "0.02", "--n", "4", option, value]
    for words in ("", "64", "64 2", "a b c d e f", "64 2 2 32 128 nan", "64 3 2 32 128 0.02", "-64 2 2 32 128 0.02"):
        yield ["advise", *words.split()]


def good_lines(folder):
    """Lines that must be understood: a generator whose good lines fail would count any error as a success."""
    return [GOOD[v].format(folder=Path(folder)).split() for v in ("list", "show", "cite", "patterns", "regime")]
