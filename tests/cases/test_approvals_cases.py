"""Calls that wait for somebody's leave: over processes, with arguments that changed, denied, and two at once."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path

import pytest
from case_processes import Effects, in_process
from case_world import Counted, World, calls, is_note, says, transcript_of

from tenlines import tool
from tenlines.core import events as ev
from tenlines.errors import ApprovalRefused, JournalDamaged
from tenlines.journal.rows import digest_of


def test_appr_01_a_question_outlives_its_process_and_the_answer_is_acted_on_by_another(world: World) -> None:
    """One process asks, one answers, one goes on."""
    store, effects = world.store(), Effects(world.folder)

    @world.tool(approve=True)
    def delete(id: int) -> str:
        """Delete."""
        effects.add(f"delete {id}")
        return "deleted"

    def ask() -> None:
        world.play().expect(status="awaiting_approval", model_calls=1, tool_runs={"delete": 0}, obs=())

    assert in_process(ask) == 0
    run_id = world.newest
    (waiting,) = world.agent().pending(run_id)
    assert (waiting.id, waiting.name, waiting.arguments) == ("a", "delete", {"id": 3})
    assert [type(event) for event in store.read(run_id)][-2:] == [ev.ApprovalAsked, ev.RunEnded]
    assert store.runs()[0].status == "awaiting_approval"
    assert [message["role"] for message in transcript_of(store, run_id)] == ["user"], "its exchange is still open"
    assert in_process(lambda: world.agent().approve(run_id, "a", by="Ann")) == 0
    assert effects.all == [], "to allow is not to run"
    run = world.play(resume=run_id, model=[says("deleted")]).expect(status="completed", model_calls=1)
    assert effects.all == ["delete 3"]
    (given,) = run.events(ev.ApprovalGiven)
    assert (given.verdict, given.by) == ("allow", "Ann")


# --- other arguments ------------------------------------------------------------------------------------


def _publisher(world: World) -> Effects:
    effects = Effects(world.folder)

    @world.tool(approve=True)
    def publish(v: str) -> str:
        """Publish."""
        effects.add(v)
        return "published"

    return effects


def _approved(world: World) -> str:
    """A run whose call is allowed and has not run yet."""
    run = world.play(model=world.input["model"][:1]).expect(status="awaiting_approval")
    (looked_at,) = run.result.pending
    assert looked_at.arguments == {"v": "draft-A"}
    assert world.agent().approve(run.result.run_id, "a", by="Ann", digest=looked_at.digest) == ()
    return run.result.run_id


def _tamper(path: Path, run_id: str, forge: bool) -> None:
    """Change on disk what the model had asked for; a forger mends the digest of the row too."""
    connection = sqlite3.connect(path)
    query = "SELECT seq, schema, body, digest FROM events WHERE run_id = ? AND type = 'ModelReplied'"
    ((seq, schema, body, digest),) = connection.execute(query, (run_id,)).fetchall()
    changed = body.replace("draft-A", "draft-B")
    assert changed != body
    if forge:
        assert digest == digest_of(run_id, seq, schema, body)
        digest = digest_of(run_id, seq, schema, changed)
    update = "UPDATE events SET body = ?, digest = ? WHERE run_id = ? AND seq = ?"
    connection.execute(update, (changed, digest, run_id, seq))
    connection.commit()
    connection.close()


def test_appr_02_leave_to_run_is_for_what_was_looked_at_and_for_nothing_else(world: World) -> None:
    store, effects, changed = world.store(), _publisher(world), world.input["model"][1:]
    for forge, words in ((False, "does not match its digest"), (True, "is about another call")):
        run_id = _approved(world)
        _tamper(store.path, run_id, forge)
        for act in (partial(world.play, resume=run_id, model=changed), partial(world.agent().approve, run_id)):
            with pytest.raises(JournalDamaged, match=words):
                act()
    run_id, known = _approved(world), world.tools["publish"]
    world.tools["publish"] = Counted(tool(lambda v, where="": "published", name="publish", approve=True))
    asked_again = world.play(resume=run_id, model=changed).expect(model_calls=0)
    (given,) = asked_again.events(ev.ApprovalGiven)
    assert asked_again.result.pending[0].digest != given.digest
    assert effects.all == []
    world.tools["publish"] = known
    _check_unchanged(world, effects)


def _check_unchanged(world: World, effects: Effects) -> None:
    """It runs once, and the model is only told the result; what the model asks for then needs leave of its own."""
    run_id = _approved(world)
    again = world.play(resume=run_id, model=world.input["model"][1:]).expect(tool_runs={"publish": 1}, model_calls=1)
    assert effects.all == ["draft-A"]
    assert [message["role"] for message in again.sent[0]] == ["user", "assistant", "tool"]
    (waiting,), (given,) = again.result.pending, again.events(ev.ApprovalGiven)
    assert waiting.arguments == {"v": "draft-B"}
    with pytest.raises(ApprovalRefused, match="another call waits"):
        world.agent().approve(run_id, waiting.place, digest=given.digest)
    assert world.agent().pending(run_id) == (waiting,)
    assert effects.all == ["draft-A"]


# --- denied ---------------------------------------------------------------------------------------------


def test_appr_03_a_denied_call_is_told_as_denied_and_asking_again_and_again_ends_the_run(world: World) -> None:
    world.store()
    world.tool(lambda: "wiped", name="wipe", approve=True)
    first, last = world.input["model"]
    run_id = world.play(model=[first]).expect(status="awaiting_approval", obs=()).result.run_id
    world.agent().deny(run_id, "a", by="Ann", reason="not today")
    run = world.play(resume=run_id, model=[last]).expect(status="completed")
    assert run.call("a").outcome == "denied"
    assert run.result.answer == "Understood."
    run = world.play(model=_insists).expect(status="awaiting_approval", obs=())
    asked = 1
    while run.result.status == "awaiting_approval":
        world.agent().deny(run.result.run_id, reason="not today")
        run = world.play(resume=run.result.run_id, model=_insists)
        asked += len(run.result.pending)
    assert run.result.status == "stuck"
    assert asked == 4, "after three it was told, and one more ended it"
    assert [record.outcome for record in run.result.calls] == ["denied"] * 4
    assert sum(is_note(message) for message in transcript_of(world.journal, run.result.run_id)) == 1
    assert world.tools["wipe"].runs == 0


def _insists(request: object) -> object:
    return calls((f"w{request.step}", "wipe", "{}"))  # type: ignore[attr-defined]


# --- two of them ----------------------------------------------------------------------------------------


def test_appr_05_each_of_two_calls_has_a_decision_of_its_own_in_whatever_order(world: World) -> None:
    world.store()
    paid = Effects(world.folder)

    @world.tool(approve=True)
    def pay(to: str) -> str:
        """Pay."""
        paid.add(to)
        return f"paid {to}"

    asks, answers = world.input["model"]
    first = world.play(model=[asks]).expect(status="awaiting_approval", tool_runs={"pay": 0}, obs=())
    run_id, agent = first.result.run_id, world.agent()
    assert [one.id for one in first.result.pending] == ["a", "b"]
    with pytest.raises(ApprovalRefused, match="2 calls"):
        agent.approve(run_id)
    assert [one.id for one in agent.approve(run_id, "b")] == ["a"]
    between = world.play(resume=run_id, model=[answers])
    between.expect(status="awaiting_approval", model_calls=0, tool_runs={"pay": 0}, obs=())
    assert [one.id for one in between.result.pending] == ["a"]
    assert agent.deny(run_id, "a") == ()
    run = world.play(resume=run_id, model=[answers]).expect(status="completed", model_calls=1)
    assert paid.all == ["Y"]
    assert run.results()["b"] == "paid Y"
    assert list(run.results()) == ["a", "b"]
