"""The server as it listens: who is let in, what every answer says, what a stream tells, and how it ends."""

from __future__ import annotations

import signal
import socket
import sqlite3
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from serve_world import PATIENCE_S, SECRET, Site, call, ended_run, until, waiting_run

from tenlines.journal.sqlite import SqliteJournal
from tenlines.serve.gate import HEADERS

pytestmark = pytest.mark.slow

# --- who is let in ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "cookie"),
    [
        ("/", ""),
        ("/?token=", ""),
        ("/?token=wrong", ""),
        ("/?token={token}x", ""),
        ("/?token={token}&token={token}", ""),
        ("/events?token={token}", ""),
        ("/runs/{run}", ""),
        ("/runs/{run}/events", ""),
        ("/nothing", ""),
        ("/", "{name}=wrong"),
        ("/", "{name}="),
        ("/", "other={value}"),
        ("/", "tenlines-1={value}"),
    ],
)
def test_without_the_token_nothing_is_shown(site: Site, journal: SqliteJournal, path: str, cookie: str) -> None:
    name, _, value = site.cookie.partition("=")
    given = {"token": site.token, "run": journal.runs()[-1].run_id, "name": name, "value": value}
    answer = site.ask("GET", path.format(**given), cookie=cookie.format(**given))
    assert answer.status == 401
    assert answer.text == "Open the address that `tenlines serve` has printed: it holds a token.\n"


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_has(site: Site) -> None:
    answer = site.ask("GET", f"/?token={site.token}", cookie="")
    assert answer.status == 200
    cookie, *flags = answer.headers["set-cookie"].split("; ")
    assert cookie == site.cookie
    assert set(flags) == {"HttpOnly", "Path=/", "SameSite=strict"}
    assert site.token not in answer.text + answer.headers["set-cookie"]
    assert site.get("/").status == 200
    odd = site.ask("GET", "/", cookie=f'a="x; b=[1,2]; {site.cookie}; c@d=e')  # as others on this host set them
    assert odd.status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.nip.io:{port}", "0.0.0.0:{port}"],
)
def test_another_host_is_refused(site: Site, host: str) -> None:
    answer = site.ask("GET", "/", {"Host": host.format(port=site.port)})
    assert (answer.status, answer.text) == (421, "This server answers to 127.0.0.1 and localhost alone.\n")


def test_it_answers_to_localhost(site: Site) -> None:
    assert site.ask("GET", "/", {"Host": f"localhost:{site.port}"}).status == 200


CROSS = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "https://127.0.0.1:{port}"},
    {"Origin": "http://127.0.0.1:1"},
]


@pytest.mark.parametrize("headers", CROSS, ids=str)
def test_what_another_origin_asks_for_is_refused(site: Site, headers: dict[str, str]) -> None:
    answer = site.ask("GET", "/", {name: value.format(port=site.port) for name, value in headers.items()})
    assert (answer.status, answer.text) == (403, "Requests of other origins are refused.\n")


def test_a_link_from_anywhere_shows_a_page(site: Site) -> None:
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert site.ask("GET", "/", followed).status == 200


BAD_POSTS: list[tuple[int, dict[str, str | None]]] = [
    (403, {"Origin": None}),
    (403, {"Origin": "http://evil.example"}),
    (403, {"Origin": "null"}),
    (403, {"Sec-Fetch-Site": "cross-site"}),
    (403, {"Sec-Fetch-Site": "same-site"}),
    (403, {"Sec-Fetch-Site": "none"}),
    (403, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}),
    (403, {"X-Tenlines-Page": None}),
    (403, {"X-Tenlines-Page": "wrong"}),
    (401, {"Cookie": ""}),
    (421, {"Host": "evil.example"}),
    (400, {"Content-Type": "text/plain"}),
    (400, {"Content-Type": "application/json"}),
]


@pytest.mark.parametrize(("status", "headers"), BAD_POSTS, ids=str)
def test_nothing_is_changed_by_a_request_that_is_not_of_our_page(
    site: Site, journal: SqliteJournal, status: int, headers: dict[str, str | None]
) -> None:
    run_id = waiting_run(journal)
    answer = site.post(f"/runs/{run_id}/cancel", {"mode": "now"}, headers)
    assert answer.status == status
    assert journal.letters({run_id: 0}) == []


@pytest.mark.parametrize("act", ["approve", "deny", "edit", "cancel", "say"])
def test_only_a_post_does_something(site: Site, journal: SqliteJournal, act: str) -> None:
    run_id = waiting_run(journal)
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"):
        headers = {"Origin": site.origin, "Sec-Fetch-Site": "same-origin", "X-Tenlines-Page": site.csrf}
        assert site.ask(method, f"/runs/{run_id}/{act}", headers).status == 405
    assert journal.letters({run_id: 0}) == []
    assert len(list(journal.read(run_id))) == len(list(journal.read(waiting_run(journal))))


# --- what every answer says ---------------------------------------------------------------------------------


def test_every_answer_has_the_headers_errors_included(site: Site, journal: SqliteJournal) -> None:
    run_id = journal.runs()[-1].run_id
    answers = {
        200: site.get("/"),
        401: site.ask("GET", "/", cookie=""),
        404: site.get("/nothing"),
        405: site.get(f"/runs/{run_id}/approve"),
        403: site.get("/", Origin="null"),
        421: site.ask("GET", "/", {"Host": "x"}),
        400: site.post(f"/runs/{run_id}/say", {"text": "x"}),
    }
    for status, answer in answers.items():
        assert answer.status == status, answer.text
        for name, value in HEADERS:
            assert answer.headers[name.lower()] == value
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; ")
        assert not {name for name in answer.headers if name.startswith("access-control") or name == "server"}


def test_a_page_may_run_its_own_scripts_alone_and_each_has_a_nonce_of_its_own(
    site: Site, journal: SqliteJournal
) -> None:
    policies = set()
    for path in ("/", f"/runs/{journal.runs()[-1].run_id}", "/"):
        answer = site.get(path)
        policy = answer.headers["content-security-policy"]
        nonce = policy.partition("script-src 'nonce-")[2].partition("'")[0]
        scripts = answer.text.count("<script")
        assert scripts == answer.text.count(f'<script nonce="{nonce}"') + answer.text.count('type="application/json"')
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        policies.add(policy)
    assert len(policies) == 3


def test_a_run_that_is_not_there_is_said_to_be(site: Site) -> None:
    for path in ("/runs/nobody", "/runs/nobody/events", "/runs/a%252Fb", "/runs/%2e%2e", "/runs/%00"):
        answer = site.get(path)
        assert answer.status in (404, 503), path
        assert "Traceback" not in answer.text
    assert "there is no run 'nobody'" in site.get("/runs/nobody").text


def test_too_much_is_refused(site: Site, journal: SqliteJournal) -> None:
    run_id = waiting_run(journal)
    answer = site.post(f"/runs/{run_id}/say", {"text": "x" * 1_100_000})
    assert answer.status == 400
    assert "more than 1,000,000 bytes" in answer.json["text"]
    assert journal.letters({run_id: 0}) == []


# --- streams --------------------------------------------------------------------------------------------------


def test_a_run_of_another_process_is_told_as_it_goes_on(site: Site, shop: Path, worker: Any) -> None:
    process, run_id = worker("stream", [call("step_on", n=1), call("step_on", n=2), "arrived"])
    one, two = site.stream(f"/runs/{run_id}/events"), site.stream(f"/runs/{run_id}/events")
    assert "head" in one.pieces()
    (shop / "stream.1").touch()
    begun = time.monotonic()
    mark = one.until("stepped on 1")
    assert time.monotonic() - begun < 3
    two.until("stepped on 1")
    one.close()
    (shop / "stream.2").touch()
    two.until("arrived")
    again = site.stream(f"/runs/{run_id}/events", **{"Last-Event-ID": mark})  # as a browser that was cut off
    missed = again.pieces()
    assert "step-2" in missed or "step-3" in missed
    assert "start" not in missed
    assert process.wait(PATIENCE_S) == 0
    for stream in (two, again):
        stream.close()


def test_what_is_seen_is_not_told_again_and_a_mark_of_another_server_means_nothing(
    site: Site, journal: SqliteJournal
) -> None:
    run_id = ended_run(journal)
    stream = site.stream(f"/runs/{run_id}/events")
    told = stream.pieces()
    assert {"start", "step-1", "step-2", "end", "head", "charts"} <= set(told)
    stream.close()
    for mark in ("other-999", "", "x", "-1", "a-b-c", told["mark"].rpartition("-")[0] + "-x"):
        stream = site.stream(f"/runs/{run_id}/events?after={mark}")
        assert set(stream.pieces()) == set(told)
        stream.close()
    waiting_run(journal)  # something else happens
    stream = site.stream(f"/runs/{run_id}/events?after={told['mark']}")
    stream._connection.sock.settimeout(0.5)
    with pytest.raises(TimeoutError):
        stream.next()


def test_the_list_tells_of_runs_that_begin_go_on_and_are_gone(site: Site, journal: SqliteJournal) -> None:
    stream = site.stream("/events")
    stream.pieces()
    run_id = waiting_run(journal, task="A new task")
    stream.until("A new task")
    journal.delete([run_id])
    while (found := stream.pieces()).get(f"run-{run_id}") != "":
        assert f"run-{run_id}" not in found


def test_a_run_that_is_deleted_while_it_is_watched_is_said_to_be_gone(site: Site, journal: SqliteJournal) -> None:
    run_id = ended_run(journal)
    stream = site.stream(f"/runs/{run_id}/events")
    stream.pieces()
    journal.delete([run_id])
    event = stream.next()
    assert event["event"] == "over"
    assert "there is no run" in event["data"]
    assert site.get(f"/runs/{run_id}").status == 404


def test_a_reader_that_does_not_read_holds_nobody_up(site: Site, shop: Path, worker: Any) -> None:
    process, run_id = worker("slow", [call("step_on", n=n) for n in (1, 2, 3)] + ["arrived"])
    stuck = socket.create_connection(("127.0.0.1", site.port))
    stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    request = f"GET /runs/{run_id}/events HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nCookie: {site.cookie}\r\n\r\n"
    stuck.sendall(request.encode())
    stream = site.stream(f"/runs/{run_id}/events")
    for number in (1, 2):
        (shop / f"slow.{number}").touch()
        stream.until(f"stepped on {number}")
    (shop / "slow.3").touch()
    stream.until("arrived")
    assert process.wait(PATIENCE_S) == 0
    stream.close()
    stuck.close()


# --- secrets and hostile texts --------------------------------------------------------------------------------


def test_a_secret_is_on_no_page_also_not_where_it_stood_before_it_was_known_to_be_one(
    site: Site, journal: SqliteJournal
) -> None:
    first = {"amount": 1, "to": SECRET}
    run_id = waiting_run(journal, first, {"amount": 2, "api_key": SECRET}, task=f"Use api_key={SECRET}")
    page = site.get(f"/runs/{run_id}").text
    stream = site.stream(f"/runs/{run_id}/events")
    told = "".join(stream.pieces().values())
    stream.close()
    for text in (page, told, site.get("/").text):
        assert SECRET not in text
        assert "[redacted]" in text


class Tags(HTMLParser):
    """The elements of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.scripts: list[dict[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag == "script":
            self.scripts.append(dict(attrs))


HOSTILE = [
    "<script>document.title = 'owned'</script>",
    "</script><img src=x onerror=alert(1)>",
    "\u202etxet",
    "\x1b[2J",
]


def test_hostile_texts_stay_texts(site: Site, journal: SqliteJournal) -> None:
    for text in HOSTILE:
        run_id = waiting_run(journal, {"amount": 1, "to": text, text: text}, task=text)
        for html in (site.get(f"/runs/{run_id}").text, site.get("/").text):
            tags = Tags(html)
            assert "img" not in tags.names
            assert all("nonce" in given or given.get("type") == "application/json" for given in tags.scripts)
            assert "\u202e" not in html
            assert "\x1b" not in html


# --- the beginning and the end --------------------------------------------------------------------------------


def test_ctrl_c_ends_it_at_once_with_streams_open(shop: Path, journal: SqliteJournal) -> None:
    site = Site(shop)
    run_id = journal.runs()[-1].run_id
    streams = [site.stream("/events"), site.stream(f"/runs/{run_id}/events")]
    for stream in streams:
        stream.pieces()
    begun = time.monotonic()
    site.popen.send_signal(signal.SIGINT)
    assert site.popen.wait(PATIENCE_S) == 0
    assert time.monotonic() - begun < 1.5
    assert site.popen.stderr is not None
    assert site.popen.stderr.read() == ""
    for stream in streams:
        stream.close()
    site.close()


def test_a_port_that_is_in_use_is_said_to_be(site: Site, shop: Path) -> None:
    words = [sys.executable, "-m", "tenlines", "serve", "--journal", str(shop / "journal.db"), "--port", str(site.port)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"tenlines: port {site.port} is in use: name another with --port, or leave it out for any\n"


def test_it_listens_on_loopback_alone(site: Site) -> None:
    listening = Path("/proc/net/tcp").read_text() if Path("/proc/net/tcp").exists() else ""
    mine = [line.split()[1] for line in listening.splitlines()[1:] if line.split()[1].endswith(f":{site.port:04X}")]
    assert {one.partition(":")[0] for one in mine} <= {"0100007F"}


def test_a_journal_that_is_not_there_or_damaged_is_said_to_be(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tenlines", "serve", "--journal", "none.db"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no journal" in done.stderr
    journal = SqliteJournal(tmp_path / "journal.db")
    run_id = ended_run(journal)
    journal.close()
    with sqlite3.connect(tmp_path / "journal.db") as connection:
        connection.execute("UPDATE events SET body = '{}' WHERE seq = 2")
    connection.close()
    site = Site(tmp_path)
    answer = site.get(f"/runs/{run_id}")
    assert answer.status == 503
    assert "`tenlines doctor` says what can be read" in answer.text
    assert site.get("/").status == 200
    site.close()
    until(lambda: site.popen.poll() is not None)
