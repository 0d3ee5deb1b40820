"""The paper's experiments: verdicts can fail, parts are kept, the page stands alone."""

import json
import math

import pytest
from small_experiment import EXPERIMENT, Settings

from amagold_lab.cli import LABORATORY, main
from amagold_lab.paper import experiment_list
from amagold_lab.paper.experiment import Check, impostor, judge
from amagold_lab.paper.finished_parts import FinishedParts


@pytest.fixture
def only_the_small_experiment(monkeypatch):
    monkeypatch.setattr(experiment_list, "MODULES", {"small": "small_experiment"})


def numbers(amagold, sghmc):
    return {"methods": {"AMAGOLD": {"error": amagold}, "SGHMC": {"error": sghmc}}}


def test_a_verdict_needs_its_checks_and_its_control():
    assert judge(EXPERIMENT, numbers(0.01, 0.5)).word == "holds"
    assert judge(EXPERIMENT, numbers(0.2, 0.5)).word == "does not hold"
    assert judge(EXPERIMENT, numbers(0.01, 0.02)).word == "cannot be told", (
        "the checks would have passed SGHMC too"
    )
    assert judge(EXPERIMENT, numbers(math.nan, 0.5)).word == "does not hold"


def test_the_impostor_leaves_the_numbers_alone():
    found = numbers(0.01, 0.5)
    assert impostor(found)["methods"]["AMAGOLD"] == {"error": 0.5}
    assert found["methods"]["AMAGOLD"] == {"error": 0.01}


@pytest.mark.parametrize(("relation", "holds"), [("<=", False), (">=", True)])
def test_a_check_reads_its_relation(relation, holds):
    assert Check("", 2.0, relation, 1.0).holds is holds
    assert Check("", 1.0, relation, 1.0).holds is True


def test_a_part_is_computed_once(tmp_path):
    computed = []

    def compute(value):
        computed.append(value)
        return {"value": value, "pair": (1, 2)}

    def part(settings, seed=0, value=1.5):
        return FinishedParts(tmp_path, "experiment", seed).part(
            "step-0.15", settings, lambda: compute(value)
        )

    first = part({"num_samples": 3})
    assert part({"num_samples": 3}) == first == {"value": 1.5, "pair": [1, 2]}
    assert len(computed) == 1
    part({"num_samples": 4})
    part({"num_samples": 3}, seed=1)
    assert len(computed) == 3, "other settings or another seed are another part"
    assert part({"num_samples": 3}) == first
    assert len(computed) == 3, "and the first is still there"


def test_a_damaged_part_is_computed_again(tmp_path):
    finished = FinishedParts(tmp_path, "experiment")
    finished.part("a", {}, lambda: {"value": 1})
    (path,) = (tmp_path / "experiment").glob("a-*.json")
    path.write_text(path.read_text()[:-20])
    assert finished.part("a", {}, lambda: {"value": 2}) == {"value": 2}


def test_an_interrupted_part_leaves_nothing(tmp_path):
    finished = FinishedParts(tmp_path, "experiment")
    with pytest.raises(KeyboardInterrupt):
        finished.part("a", {}, lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    assert not list((tmp_path / "experiment").iterdir())


def test_keys_belong_to_names_and_seeds(tmp_path):
    def words(experiment, seed, name):
        import jax

        return tuple(
            jax.random.key_data(FinishedParts(tmp_path, experiment, seed).key(name)).tolist()
        )

    assert (
        len({words("a", 0, "x"), words("a", 0, "y"), words("b", 0, "x"), words("a", 1, "x")}) == 4
    )
    assert words("a", 0, "x") == words("a", 0, "x")


def test_the_command_writes_a_report(tmp_path, only_the_small_experiment, capsys):
    assert main(["reproduce", "--preset", "quick", "--output", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "The claim holds." in printed
    assert "2/2 SGHMC" in printed
    found = json.loads((tmp_path / "out" / "numbers.json").read_text())
    assert found["command"] == "amagold reproduce all --preset quick"
    assert found["items"]["small"]["verdict"] == "holds"
    assert [check["holds"] for check in found["items"]["small"]["control"]] == [False]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Figure 0: &lt;errors&gt; &amp; more" in page
    assert page.count("data:image/png;base64,") == 2
    assert "http" not in page.replace("http-equiv", ""), "nothing is fetched"
    assert sorted(path.name for path in (tmp_path / "out").glob("*.png")) == [
        "small-again.png",
        "small.png",
    ]


def test_a_claim_that_does_not_hold_shows_in_the_exit_code(
    tmp_path, only_the_small_experiment, monkeypatch, capsys
):
    monkeypatch.setattr(
        "small_experiment.EXPERIMENT",
        EXPERIMENT._replace(checks=lambda numbers: [Check("something", 2.0, "<=", 1.0)]),
    )
    assert main(["reproduce", "small", "--output", str(tmp_path)]) == 1
    assert "failed: something: 2, should be <= 1" in capsys.readouterr().out


def test_an_experiment_without_its_data_says_so_and_the_others_go_on(
    tmp_path, only_the_small_experiment, monkeypatch, capsys
):
    monkeypatch.setattr(
        "small_experiment.EXPERIMENT",
        EXPERIMENT._replace(settings={"quick": Settings(10, is_available=False)}),
    )
    assert main(["reproduce", "--output", str(tmp_path)]) == 0
    assert "not run: the data <cannot> be had; set AMAGOLD_DATA" in capsys.readouterr().out
    assert "the data &lt;cannot&gt; be had" in (tmp_path / "report.html").read_text()


def test_unknown_names_are_refused(tmp_path, capsys):
    assert main(["reproduce", "figure-9", "--output", str(tmp_path)]) == 2
    assert "names must be among double-well, dist" in capsys.readouterr().err


def test_the_page_needs_jinja(only_the_small_experiment, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["reproduce", "small", "--output", str(tmp_path / "out")]) == 2
    assert "pip install 'amagold[paper]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_help_names_every_experiment():
    (command,) = (command for command in LABORATORY if command.name == "reproduce")
    assert all(name in command.options[0].settings["help"] for name in experiment_list.MODULES)
