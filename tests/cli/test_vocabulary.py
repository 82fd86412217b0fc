"""One word for each thing, in every verb: the options of all verbs are walked."""

from collections import defaultdict
from pathlib import Path

import pytest
from typer.main import get_command

from pathlines.cli.program import app
from pathlines.draw import ANIMATIONS, FIGURES
from pathlines.foundation.setting import fields
from pathlines.model import MODELS

FILES = {
    "--figure": "a picture", "--out": "data", "--animate": "a film", "--report": "an HTML page",
    "--table": "a Markdown table", "--page": "a Markdown page", "--tokens": "an array of tokens",
    "--export": "a page that plays", "--ids": "token ids", "--numbers": "numbers", "--text": "texts",
}  # fmt: skip
"""Every option that names a file, and what is in it."""
RANDOM = (
    "run",
    "verify",
    "collapse",
    "modes",
    "staircase",
    "advise",
    "probe",
    "retrieval",
    "synchronise",
    "context",
    "modes-of",
    "view",
)
"""Verbs that draw something at random; figures and animations have the seed among their own settings."""
OLD = {"--plot", "--file", "--context", "--confirm", "--random", "--iterate", "--max-tokens"}


@pytest.fixture(scope="module")
def options():
    found = defaultdict(dict)
    for verb, command in get_command(app).commands.items():
        for option in command.params:
            if option.param_type_name == "option":
                for name in option.opts:
                    found[name][verb] = option
    return found


def test_an_option_has_one_kind_in_every_verb(options):
    for name, verbs in options.items():
        kinds = {_kind(o) for o in verbs.values()}
        assert len(kinds - {"integer"}) <= 1, f"{name}: {kinds}"


def _kind(option):
    kind = option.type_descriptor.annotation
    return "flag" if option.is_flag else "integer" if kind is int else kind


def test_files_have_one_name_for_what_is_in_them(options):
    named = {name for name, verbs in options.items() if any(_kind(o) is Path for o in verbs.values())}
    assert named == set(FILES)
    assert all(_kind(o) is Path for name in FILES for o in options[name].values())


def test_settings_of_figures_films_and_models_take_no_word_from_files_and_switches(options):
    """A number called --tokens in one verb and a file in another would be two things of one name."""
    switches = {name for name, verbs in options.items() if any(o.is_flag for o in verbs.values())}
    settings = {name: entry.quick for name, entry in FIGURES.items()}
    settings |= {name: film.picture.quick for name, film in ANIMATIONS.items()}
    settings |= {name: entry.parameters() for name, entry in MODELS.items()}
    words = {(n, _option(f.name), type(getattr(s, f.name))) for n, s in settings.items() for f in fields(type(s))}
    assert not [w for w in words if w[1] in FILES or (w[1] in switches and w[2] is not bool)]


def _option(name):
    return "--" + name.replace("_", "-")


def test_json_is_a_flag_and_old_spellings_are_gone(options):
    assert all(o.is_flag for o in options["--json"].values())
    assert set(options["--set"]) == {"verify"}
    assert not OLD & set(options)


def test_tokens_are_counted_by_n(options):
    assert {
        "run",
        "collapse",
        "gaussian",
        "modes",
        "patterns",
        "regime",
        "staircase",
        "tradeoff",
        "advise",
        "probe",
    } <= set(options["--n"])


def test_whatever_is_random_has_a_seed(options):
    assert set(options["--seed"]) == set(RANDOM)


def test_shared_words_have_one_help(options):
    for name in ("--beta", "--step", "--heads", "--logit-scale", "--rtol", "--figure", "--report", "--json", "--force"):
        said = {o.help for verb, o in options[name].items() if (verb, name) != ("run", "--step")}
        assert len(said) == 1, f"{name}: {said}"


def test_every_parameter_of_every_model_says_what_it_means():
    silent = [(m, f.name) for m, entry in MODELS.items() for f in fields(entry.parameters) if not f.meaning]
    assert not silent


def test_defaults_of_records_build_the_model():
    """The record of a model holds exactly what its builder takes."""
    for name in ("sa", "pre-ln", "gaussian-sinkhorn", "sigmoid", "zonal", "random-block"):
        entry = MODELS[name]
        record = entry.parameters()
        built = entry.build(**{f.name: getattr(record, f.name) for f in fields(type(record))})
        assert type(built) is type(entry.build())
