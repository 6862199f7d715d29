"""`tenlines report`: what is chosen, where it goes, what is said, what is kept out of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import webbrowser
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from shops import family, put, shop
from told_run import CAREFUL, Run

from tenlines.cli import main
from tenlines.cli.served import shareable
from tenlines.core import events as ev
from tenlines.core.limits import Limits
from tenlines.core.transcript import ToolCall
from tenlines.journal import open_journal

SECRET = "sk-live-4711-abcdef"


class Said(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def tenlines(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command, in a folder of its own, over a journal with three runs and a family."""
    store: Any = open_journal(str(tmp_path / "runs.db"))
    put(
        store, shop(3, run_id="first"), shop(5, run_id="second"), _capped("third"), _leaky("fourth"), *family().values()
    )
    store.close()
    monkeypatch.setenv("TENLINES_JOURNAL", str(tmp_path / "runs.db"))
    monkeypatch.chdir(tmp_path)

    def called(*words: str) -> Said:
        with pytest.raises(SystemExit) as ended:
            main(["report", *words])
        out, err = capfd.readouterr()
        return Said(int(ended.value.code or 0), out, err)

    return called


def _renamed(run: Run, run_id: str) -> list[ev.AnyEvent]:
    import msgspec

    return [msgspec.structs.replace(run.log[0], run_id=run_id), *run.log[1:]]  # type: ignore[list-item]


def _capped(run_id: str) -> list[ev.AnyEvent]:
    run = Run(limits=Limits(steps=1)).reply("", ToolCall("a", "nothing", "{}")).refuse_all()
    run.finish()
    return _renamed(run, run_id)


def _leaky(run_id: str) -> list[ev.AnyEvent]:
    run = Run(CAREFUL).reply(
        SECRET, ToolCall("a", "nothing", json.dumps({"api_key": SECRET, "mail": "ann@example.org"}))
    )
    run.refuse_all()
    run.tell(ev.CancelRequested, mode="now", reason=f"token={SECRET}")
    run.finish()
    return _renamed(run, run_id)


def data_of(html: str) -> dict[str, Any]:
    block = re.search(r'id="data">(.*?)</script>', html, re.DOTALL)
    assert block is not None
    found: dict[str, Any] = json.loads(block[1])
    return found


def test_a_run_becomes_a_file_beside_whoever_asks(tenlines: Any) -> None:
    said = tenlines("first")
    assert said.code == 0
    assert re.fullmatch(r"first\.html: 1 run, [0-9.]+ kB\n", said.out)
    assert data_of(Path("first.html").read_text())["shown"] == ""


def test_a_file_that_is_there_is_overwritten_only_by_force(tenlines: Any) -> None:
    Path("first.html").write_text("mine")
    said = tenlines("first")
    assert (said.code, said.out) == (2, "")
    assert "first.html is there already; --force overwrites it" in said.err
    assert Path("first.html").read_text() == "mine"
    assert tenlines("first", "--force").code == 0
    assert tenlines("first", "-o", "other.html", "--force").code == 0
    assert sorted(file.suffix for file in Path().iterdir()) == [".db", ".html", ".html"]


def test_standard_output_gets_the_page_and_nothing_else(tenlines: Any) -> None:
    said = tenlines("second", "-o", "-")
    assert said.out.startswith("<!doctype html>")
    assert said.out.endswith("</html>")
    assert said.err == ""


def test_several_runs_are_named_or_the_newest(tenlines: Any) -> None:
    assert tenlines("first", "second", "first").out.startswith("runs.html: 2 runs, ")
    tenlines("--last", "9", "--status", "answered", "-o", "answered.html")
    heads = {run["facts"][0] for run in data_of(Path("answered.html").read_text())["runs"]}
    assert heads == {"answered"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name a run (`last` is the newest, `tenlines runs` lists them), or take several with --last N"),
        (("first", "--last", "2"), "--last takes the newest runs: leave it out, or the runs that you named"),
        (("first", "--status", "stuck"), "--status chooses among the newest runs: say how many with --last N"),
        (("--last", "3", "--status", "lost"), "--status must be open or answered"),
        (("--last", "3", "--status", "refused"), "there is no run with the status refused in the journal"),
        (("nowhere",), "no run begins with 'nowhere'"),
        (("first", "-o", "no/such/folder/x.html"), "no/such/folder/x.html cannot be written: No such file"),
        (("first", "-o", "."), ". is a directory; name a file"),
        (("first", "-o", "-", "--open"), "--open needs a file: leave out -o -"),
        (("first", "--redact", "x", "--no-redact"), "--no-redact takes nothing out"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(tenlines: Any, words: tuple[str, ...], message: str) -> None:
    said = tenlines(*words)
    assert said.code == 2
    assert message in said.err
    assert "Traceback" not in said.err
    assert not list(Path().glob("*.html"))


def test_secrets_are_out_of_sight_unless_somebody_wants_them(tenlines: Any) -> None:
    page = tenlines("fourth", "-o", "-").out
    assert SECRET not in page
    assert "[redacted]" in page
    assert "ann@example.org" in page
    assert "ann@example.org" not in tenlines("fourth", "-o", "-", "--redact", "mail").out
    assert SECRET in tenlines("fourth", "-o", "-", "--no-redact").out


def test_a_function_takes_out_what_it_knows(tenlines: Any) -> None:
    Path("hide.py").write_text("def hide(text):\n    return text.replace('ann', 'A')\n")
    page = tenlines("fourth", "-o", "-", "--redact-with", "hide.py:hide").out
    assert "ann@example.org" not in page
    assert "A@example.org" in page


def test_what_can_be_done_is_a_command_to_be_copied(tenlines: Any, tmp_path: Path) -> None:
    assert "tenlines resume third --max-steps 2" in tenlines("third", "-o", "-").out
    named = tenlines("third", "-o", "-", "--journal", str(tmp_path / "runs.db")).out
    assert f"tenlines resume third --journal {tmp_path / 'runs.db'} --max-steps 2" in named


def test_the_password_of_a_database_is_in_no_command() -> None:
    assert shareable("postgresql://me:hush@host:5432/runs?x=1") == "postgresql://me@host:5432/runs?x=1"
    assert shareable("postgresql://me@host/runs") == "postgresql://me@host/runs"
    assert shareable("runs.db") == "runs.db"
    assert shareable(None) is None


def test_the_runs_under_calls_are_on_the_page(tenlines: Any) -> None:
    found = data_of(tenlines("outer", "-o", "-").out)
    parents = {run["run_id"]: run["parent"] for run in found["runs"]}
    assert parents == {"outer": "", "middle": "call-1-1", "inner": "r2-call-1-1"}
    step = next(
        item for run in found["runs"] if run["run_id"] == "outer" for item in run["items"] if item["id"] == "step-1"
    )
    assert 'data-child="r2"' in step["html"]
    several = data_of(tenlines("outer", "middle", "-o", "-").out)
    assert {run["run_id"]: run["parent"] for run in several["runs"]}["middle"] == "", "it was asked for itself"


def test_a_browser_is_opened(tenlines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: not opened.append(address))
    assert tenlines("first", "--open").err == ""
    assert opened == [Path("first.html").resolve().as_uri()]
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    assert "no browser was found; open file://" in tenlines("first", "--open", "--force").err


@pytest.mark.slow
def test_without_the_extra_the_install_command_is_said(tmp_path: Path) -> None:
    code = "import sys; sys.modules['jinja2'] = None; from tenlines.cli import main; main(['report', 'last'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tenlines: a page needs an optional dependency: pip install 'tenlines[report]'\n"


@pytest.mark.slow
def test_neither_the_package_nor_the_help_brings_jinja_in() -> None:
    code = "import sys, tenlines, tenlines.report, tenlines.cli.app; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
