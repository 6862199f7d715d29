"""What the commands say of a run that a fleet has; and how the file with its agents is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleet_app import app_agent, queued, worked_on, write_app
from shopping import events_of

from tenlines.cli.fleets import load_fleet
from tenlines.core.limits import Limits
from tenlines.errors import ConfigError
from tenlines.journal import open_journal

Tenlines = Callable[..., Any]


@pytest.fixture(autouse=True)
def app(home: Path) -> None:
    write_app(home)


# --- the file -------------------------------------------------------------------------------------------------


def test_the_agents_of_a_file_are_a_fleet() -> None:
    (lane,) = load_fleet(["app.py"]).lanes(["default"])
    assert lane == ("default", "support", "2")


def test_a_fleet_of_the_file_is_taken_as_it_is_whatever_agents_stand_beside_it(home: Path) -> None:
    (home / "fleet.py").write_text(
        "from tenlines import Agent\nfrom tenlines.fleet import Fleet, Queue\n"
        "beside = Agent(['x'], name='beside')\n"
        "fleet = the_same = Fleet([Agent(['x'], name='b', version='3')], queues=[Queue('q')], also={'b': ['2']})\n"
    )
    fleet = load_fleet(["fleet.py"])
    assert [str(lane) for lane in fleet.lanes(fleet.queues)] == ["q/b@3", "q/b@2"]


def test_several_files_make_one_fleet_and_can_be_named_by_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "more.py").write_text("from tenlines import Agent\nbilling = Agent(['paid'], name='billing')\n")
    assert {one.name for one in load_fleet(["app.py", "more.py"]).agents} == {"support", "billing"}
    monkeypatch.setenv("TENLINES_APP", "app.py:more.py")
    assert {one.name for one in load_fleet(None).agents} == {"support", "billing"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "bad.py: there is no agent at the top level"),
        ("def broken(:\n", "bad.py, line 1: "),
        ("raise RuntimeError('no key')\n", "bad.py could not be imported: RuntimeError: no key"),
        ("from tenlines.fleet import Fleet\nfleet = Fleet([])\n", "bad.py: the Fleet has no agents"),
        (
            "from tenlines import Agent\nfrom tenlines.fleet import Fleet\n"
            "a, b = Fleet([Agent(['x'])]), Fleet([Agent(['x'])])\n",
            "bad.py: there are 2 Fleets at the top level",
        ),
        ("from tenlines import Agent\na, b = Agent(['x']), Agent(['y'])\n", "two agents are called 'agent'"),
        ("from tenlines import Agent\na = Agent(['x'], name='a/b')\n", "give it a name without / and @"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(home: Path, text: str, said: str) -> None:
    (home / "bad.py").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_fleet(["bad.py"])
    assert said in str(caught.value)


# --- a run that nobody has begun ------------------------------------------------------------------------------


def test_a_queued_run_is_shown_as_one(tenlines: Tenlines) -> None:
    run_id = queued("look")
    assert "open, queued" in tenlines("runs").out
    shown = tenlines("show", run_id).out
    assert "open, queued" in shown
    assert f"its fleet works on it: tenlines wait {run_id}" in shown
    assert "resume" not in shown
    assert json.loads(tenlines("runs", "--json").out)["status"] == "open"


def test_an_open_run_of_no_owner_and_no_fleet_is_only_open(tenlines: Tenlines) -> None:
    run_id = app_agent().run_sync("look", limits=Limits(steps=1), raise_on_stop=False).run_id
    log = events_of(run_id)[:1]
    store = open_journal()
    store.delete([run_id])  # type: ignore[attr-defined]
    store.append(
        run_id, type(log[0])(**{name: getattr(log[0], name) for name in log[0].__struct_fields__} | {"owner": ""})
    )
    store.commit(run_id)
    assert "  open    " in tenlines("runs").out


def test_resume_leaves_a_run_to_its_fleet_unless_it_is_told_to_take_it(tenlines: Tenlines) -> None:
    run_id = queued("hello")
    refused = tenlines("resume", run_id)
    assert (refused.code, refused.out) == (2, "")
    assert f"is worked on by a fleet: tenlines wait {run_id}. `--take-over` takes" in refused.err
    taken = tenlines("resume", run_id, "--take-over", "--tools", "app.py", "--model", "scripted")
    assert "is worked on by a fleet" not in taken.err


def test_resume_leaves_a_paused_run_to_its_fleet_and_goes_on_with_one_that_has_ended(tenlines: Tenlines) -> None:
    paused, ended = queued("pay"), queued("look", limits=Limits(steps=1))
    worked_on(paused)
    worked_on(ended)
    assert "is worked on by a fleet" in tenlines("resume", paused).err
    assert "is worked on by a fleet" not in tenlines("resume", ended).err


def test_resume_all_leaves_them_alone_and_says_so(tenlines: Tenlines) -> None:
    run_id = queued("look")
    done = tenlines("resume", "--all", "--take-over")
    assert done.code == 0
    assert f"{run_id}  skipped   it is worked on by a fleet: tenlines wait {run_id}" in done.out
    assert len(events_of(run_id)) == 1


# --- people ---------------------------------------------------------------------------------------------------


def test_a_decision_says_that_the_workers_go_on_by_themselves(tenlines: Tenlines) -> None:
    run_id = queued("pay")
    worked_on(run_id)
    listed = tenlines("pending").out
    assert f"  tenlines approve {run_id}\n" in listed
    assert "its workers then go on by themselves" in listed
    assert "--resume" not in listed
    refused = tenlines("approve", run_id, "--resume")
    assert refused.code == 2
    assert "leave --resume out" in refused.err
    assert tenlines("pending").out == listed  # nothing was decided
    done = tenlines("approve", run_id, "--by", "Carla")
    assert done.code == 0
    assert done.out.endswith(f"its workers go on by themselves: tenlines wait {run_id}\n")
    assert worked_on(run_id).answer == "done: pay"


def test_a_denial_says_so_too_and_as_json_the_next_command_waits(tenlines: Tenlines) -> None:
    run_id = queued("pay")
    worked_on(run_id)
    done = tenlines("deny", run_id, "--json")
    assert json.loads(done.out)["next"] == f"tenlines wait {run_id}"


def test_what_is_said_to_a_queued_run_waits_for_a_worker(tenlines: Tenlines) -> None:
    run_id = queued("hello")
    done = tenlines("say", run_id, "Be brief.")
    said = f"posted; nobody works on run {run_id}, so it is heard when a worker of its fleet takes it up\n"
    assert (done.code, done.out, done.err) == (0, said, "")
    stopped = json.loads(tenlines("cancel", run_id, "--json").out)
    assert (stopped["fate"], stopped["next"]) == ("waits", "")
    assert worked_on(run_id).status == "cancelled"
