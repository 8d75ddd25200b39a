"""kubernetes.yaml: the schemas of the API take it, its parts fit together, and its configuration is good."""

import base64
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from tests.deploy.shipped import DEPLOY, check_configuration, read_yaml
from tests.interop.pypi import tool

import forecourt
from forecourt.server.serving import DRAIN_SECONDS

OBJECTS: Final[list[dict[str, Any]]] = read_yaml("kubernetes.yaml")


def one(kind: str) -> dict[str, Any]:
    """Return the object of a kind that is called forecourt."""
    (found,) = (each for each in OBJECTS if each["kind"] == kind and each["metadata"]["name"] == "forecourt")
    return found


def pod() -> dict[str, Any]:
    found: dict[str, Any] = one("Deployment")["spec"]["template"]["spec"]
    return found


def container() -> dict[str, Any]:
    (found,) = pod()["containers"]
    assert isinstance(found, dict)
    return found


def test_the_schemas_of_the_api_take_every_object(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    checker = tool("kubernetes-validate==1.37.0", request.config)
    wrong = tmp_path / "wrong.yaml"
    text = (DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")
    wrong.write_text(text.replace("maxSurge: 1", "maxSurges: 1"), encoding="utf-8")
    command: list[str | Path] = [sys.executable, checker.command("kubernetes-validate"), "--strict"]
    ended = checker.run(*command, DEPLOY / "kubernetes.yaml", wrong)
    said = ended.stdout + ended.stderr
    assert said.count("kubernetes.yaml passed for resource ") == len(OBJECTS), said
    # What finds nothing would also find nothing in this one.
    assert ended.returncode != 0
    assert "maxSurges" in said


def test_everything_is_in_one_namespace() -> None:
    name = one("Namespace")["metadata"]["name"]
    assert {each["metadata"]["namespace"] for each in OBJECTS if each["kind"] != "Namespace"} == {name}


def test_the_selectors_find_the_pods() -> None:
    labels = one("Deployment")["spec"]["template"]["metadata"]["labels"].items()
    selectors = [
        one("Deployment")["spec"]["selector"]["matchLabels"],
        one("Service")["spec"]["selector"],
        one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        *(spread["labelSelector"]["matchLabels"] for spread in pod()["topologySpreadConstraints"]),
    ]
    assert len(selectors) == 6
    assert all(selector.items() <= labels for selector in selectors)


def test_what_is_named_is_there() -> None:
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    assert ports == {"http": 8000}
    assert one("Service")["spec"]["ports"][0]["targetPort"] in ports
    services = {each["metadata"]["name"] for each in OBJECTS if each["kind"] == "Service"}
    for rule in one("Ingress")["spec"]["rules"]:
        assert {path["backend"]["service"]["name"] for path in rule["http"]["paths"]} <= services
        assert rule["host"] in one("Ingress")["spec"]["tls"][0]["hosts"]
    volumes = {volume["name"]: volume for volume in pod()["volumes"]}
    assert {mount["name"] for mount in container()["volumeMounts"]} == volumes.keys()
    assert volumes["config"]["configMap"]["name"] == one("ConfigMap")["metadata"]["name"]
    assert pod()["serviceAccountName"] == one("ServiceAccount")["metadata"]["name"]
    assert container()["image"].endswith(f":{forecourt.__version__}")


def test_a_pod_can_write_nothing_and_gain_nothing() -> None:
    secure = container()["securityContext"]
    assert secure == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert pod()["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod()["automountServiceAccountToken"] is False
    assert pod()["enableServiceLinks"] is False


def test_the_pod_runs_as_the_user_of_the_image() -> None:
    image = (DEPLOY.parent / "Dockerfile").read_text(encoding="utf-8")
    user = pod()["securityContext"]["runAsUser"]
    assert f"\nUSER {user}:{pod()['securityContext']['runAsGroup']}\n" in image
    mounts = {mount["mountPath"] for mount in container()["volumeMounts"]}
    assert {"/data", "/tmp"} < mounts
    assert "FORECOURT_DATA=/data\n" in image


def test_an_update_takes_no_pod_away_before_another_serves() -> None:
    spec = one("Deployment")["spec"]
    assert spec["replicas"] >= 2
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    probes = {kind: container()[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "readiness", "liveness")}
    assert probes == {"startup": "/healthz", "readiness": "/readyz", "liveness": "/healthz"}


def test_requests_under_way_are_given_their_time() -> None:
    served = tomllib.loads(one("ConfigMap")["data"]["forecourt.toml"])["server"]["drain_seconds"]
    assert served >= 5
    # The page on processes: drain_seconds and a minute.
    assert pod()["terminationGracePeriodSeconds"] >= DRAIN_SECONDS + 30 + served


def test_secrets_come_from_the_secret_alone() -> None:
    given = {each["name"]: each for each in container()["env"]}
    secret = [name for name, each in given.items() if "secretKeyRef" in each.get("valueFrom", {})]
    assert secret == ["FORECOURT_STORE", "FORECOURT_LEADS_KEY", "SMTP_PASSWORD"]
    assert not [each for each in OBJECTS if each["kind"] == "Secret"]


def test_the_configuration_is_good_under_the_environment_that_a_pod_has(tmp_path: Path) -> None:
    for name, text in one("ConfigMap")["data"].items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    secrets = {
        "FORECOURT_STORE": "postgresql://forecourt:secret@postgres.example.com/forecourt",
        "FORECOURT_LEADS_KEY": base64.b64encode(bytes(range(32))).decode(),
        "SMTP_PASSWORD": "secret",
    }
    said = check_configuration(tmp_path / "forecourt.toml", {**secrets, "FORECOURT_DATA": "/data"})
    assert "good; serves 1 seller" in said
    # A Pod's files end with it.
    assert "[[dealer.deliveries]]" in one("ConfigMap")["data"]["forecourt.toml"]
