"""The recipe for containers: no engine runs here, so what it says is held against what there is."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from tenlines.cli.app import app

ROOT = Path(__file__).parents[2]
DEPLOY, EXAMPLE = ROOT / "deploy", ROOT / "examples" / "fleet"
COMMANDS: Any = typer.main.get_command(app)
SECONDS = {"s": 1, "m": 60}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return loaded


@pytest.fixture(scope="module")
def dockerfile() -> list[list[str]]:
    """Its instructions, each in words."""
    text = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text())
    return [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]


def understood(words: list[str]) -> dict[str, Any]:
    """The options of a command of tenlines, read by the command itself; fails where it would refuse them."""
    command = COMMANDS.commands[words[0]]
    with command.make_context(words[0], list(words[1:]), resilient_parsing=False) as context:
        return dict(context.params)


def args(instruction: str, dockerfile: list[list[str]]) -> list[str]:
    (found,) = [rest for name, rest in dockerfile if name == instruction]
    return list(yaml.safe_load(found))


def seconds(text: str) -> int:
    found = re.fullmatch(r"(\d+)([sm])", text)
    assert found is not None, text
    return int(found[1]) * SECONDS[found[2]]


# --- compose ----------------------------------------------------------------------------------------------


def test_workers_are_started_as_the_command_takes_it_and_have_time_to_drain(compose: dict[str, Any]) -> None:
    worker = compose["services"]["worker"]
    given = understood(worker["command"])
    assert worker["deploy"]["replicas"] == 2
    assert seconds(worker["stop_grace_period"]) > given["grace"] > 0
    assert given["metrics"] == "0.0.0.0:9464"
    assert "http://127.0.0.1:9464/readyz" in worker["healthcheck"]["test"][-1]
    compile(worker["healthcheck"]["test"][-1], "healthcheck", "exec")


def test_what_is_submitted_by_hand_is_understood(compose: dict[str, Any]) -> None:
    entry = compose["services"]["submit"]["entrypoint"]
    assert entry[0] == "tenlines"
    assert understood([*entry[1:], "Where is order 1042?"])["wait"] is True


def test_variables_are_those_that_are_read(compose: dict[str, Any]) -> None:
    from tenlines.cli.fleets import APP_VARIABLE, TEMPORAL_VARIABLE

    known = {"TENLINES_JOURNAL", "PGPASSWORD", APP_VARIABLE, TEMPORAL_VARIABLE}
    for name in ("worker", "submit"):
        environment = compose["services"][name]["environment"]
        assert set(environment) <= known
        assert environment["TENLINES_JOURNAL"].startswith("postgresql://")
        host, _, port = environment[TEMPORAL_VARIABLE].partition(":")
        assert host in compose["services"]
        assert port == "7233"


def test_services_wait_for_services_that_there_are_and_that_can_be_waited_for(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            needs = {"service_healthy": "healthcheck", "service_completed_successfully": "command"}
            assert needs[how["condition"]] in services[other], (name, other)
        for config in service.get("configs", []):
            assert config["source"] in compose["configs"]
        for volume in service.get("volumes", []):
            assert volume.partition(":")[0] in compose["volumes"]


def test_only_this_machine_reaches_what_is_published_and_no_registry_is_named(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        assert "." not in service["image"].partition("/")[0].partition(":")[0]


def test_no_password_is_in_the_file(compose: dict[str, Any]) -> None:
    variables = [one for service in compose["services"].values() for one in service.get("environment", {}).items()]
    secret = [value for name, value in variables if re.search("PASSWORD|PWD", name)]
    assert len(secret) == 5
    assert all(re.match(r"\$\{(POSTGRES|TEMPORAL)_PASSWORD:\?a password", one) for one in secret)
    assert "PASSWORD '${TEMPORAL_PASSWORD:?a password" in compose["configs"]["temporal-role"]["content"]


def test_shell_scripts_in_it_are_read_by_a_shell(compose: dict[str, Any]) -> None:
    for name in ("temporal-schema", "temporal-namespace"):
        script = compose["services"][name]["command"][0].replace("$$", "$")
        done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


# --- the image --------------------------------------------------------------------------------------------


def test_the_image_is_made_of_files_that_there_are(dockerfile: list[list[str]]) -> None:
    copied = [word for name, rest in dockerfile if name == "COPY" for word in rest.split()[:-1]]
    assert copied
    assert all((ROOT / one).exists() for one in copied)
    app_file = next(rest for name, rest in dockerfile if name == "ENV" and "TENLINES_APP" in rest)
    assert "TENLINES_APP=/app/support.py" in app_file
    assert "examples/support.py" in copied
    assert "examples/orders.py" in copied


def test_the_image_starts_a_worker_and_asks_it_how_it_is(dockerfile: list[list[str]]) -> None:
    assert args("ENTRYPOINT", dockerfile) == ["tenlines"]
    given = understood(args("CMD", dockerfile))
    assert (given["grace"], given["metrics"]) == (60.0, "0.0.0.0:9464")
    check = next(rest for name, rest in dockerfile if name == "HEALTHCHECK")
    (words,) = re.findall(r"CMD (\[.*\])", check)
    compile(yaml.safe_load(words)[-1], "healthcheck", "exec")
    assert next(rest for name, rest in dockerfile if name == "FROM").startswith("python:3.")


# --- pages and scripts ------------------------------------------------------------------------------------


def commands_of(file: Path) -> list[list[str]]:
    """The lines of a page that call tenlines, in words; names in capitals stand for something."""
    text = re.sub(r"xargs -n 1 (tenlines .*)", r"\n$ \1 RUN", file.read_text())
    lines = re.findall(r"^(?:\$ |exec \.venv/bin/)tenlines (.*)", text, re.MULTILINE)
    words = [shlex.split(line.partition(" | ")[0], comments=True) for line in lines]
    return [[one for one in line if not one.startswith("${@")] for line in words]


@pytest.mark.parametrize(
    "page", [DEPLOY / "README.md", ROOT / "docs" / "fleet.md", EXAMPLE / "run"], ids=lambda page: page.name
)
def test_commands_are_ones_that_there_are(page: Path) -> None:
    commands = commands_of(page)
    assert commands
    for words in commands:
        understood(words)


def test_the_example_starts_workers_as_the_command_takes_it() -> None:
    text = (EXAMPLE / "bring_up.py").read_text()
    options = set(re.findall(r'"(--[a-z]+)"', text.partition("def _options")[0]))
    assert options == {"--metrics", "--grace", "--heartbeat"}
    assert options <= {one for parameter in COMMANDS.commands["worker"].params for one in parameter.opts}
