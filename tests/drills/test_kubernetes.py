"""The manifests of deploy/kubernetes, without a cluster: each field exists in the published API
with that type, and values that occur in two places agree.

The schema covers what the manifests use of the API's versions v1, apps/v1 and policy/v1, and
refuses anything else. It was written from the API's reference; no API server has checked the files.
"""
import re
import subprocess

import jsonschema
import pytest
import yaml

from drill import BUILD, SECONDS, TOP

FOLDER = TOP / "deploy/kubernetes"
VERSION = (TOP / "VERSION").read_text().strip()
TEXT = {"type": "string"}
NUMBER = {"type": "integer", "minimum": 0}
YES = {"type": "boolean"}
TEXTS = {"type": "array", "items": TEXT, "minItems": 1}
NAME = {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}
QUANTITY = {"type": "string", "pattern": r"^\d+(m|Ki|Mi|Gi|Ti)?$"}
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
LABELS = {"type": "object", "additionalProperties": TEXT, "minProperties": 1}


def fields(required="", **properties):
    """Returns the schema of an object with exactly these fields."""
    return {"type": "object", "properties": properties, "required": required.split(),
            "additionalProperties": False}


def many(item):
    return {"type": "array", "items": item, "minItems": 1}


def one_of(*words):
    return {"enum": list(words)}


META = fields("name", name=NAME, namespace=NAME, labels=LABELS)
SELECTOR = fields("matchLabels", matchLabels=LABELS)
EXEC = fields("command", command=TEXTS)
TIMES = {each: NUMBER for each in ("periodSeconds", "timeoutSeconds", "failureThreshold",
                                   "successThreshold", "initialDelaySeconds")}
PROBE = {"oneOf": [
    fields("httpGet", **TIMES,
           httpGet=fields("path port", path=TEXT, port={"anyOf": [NAME, PORT]})),
    fields("exec", exec=EXEC, **TIMES)]}
VARIABLE = {"oneOf": [
    fields("name value", name=TEXT, value=TEXT),
    fields("name valueFrom", name=TEXT, valueFrom=fields("fieldRef", fieldRef=fields(
        "fieldPath", fieldPath=one_of("spec.nodeName", "metadata.name", "metadata.namespace",
                                      "status.podIP"))))]}
AMOUNTS = {"type": "object", "additionalProperties": QUANTITY,
           "propertyNames": one_of("cpu", "memory", "storage")}
CONTAINER = fields(
    "name image", name=NAME, image=TEXT, command=TEXTS, args=TEXTS, env=many(VARIABLE),
    ports=many(fields("containerPort", name=dict(NAME, maxLength=15), containerPort=PORT,
                      protocol=one_of("TCP", "UDP", "SCTP"))),
    resources=fields(requests=AMOUNTS, limits=AMOUNTS),
    securityContext=fields(allowPrivilegeEscalation=YES, readOnlyRootFilesystem=YES,
                           capabilities=fields(drop=TEXTS, add=TEXTS)),
    startupProbe=PROBE, readinessProbe=PROBE, livenessProbe=PROBE,
    lifecycle=fields(preStop=fields("exec", exec=EXEC)),
    volumeMounts=many(fields("name mountPath", name=NAME, mountPath=TEXT, readOnly=YES)))
VOLUME = {"oneOf": [
    fields("name emptyDir", name=NAME,
           emptyDir=fields(medium=one_of("", "Memory"), sizeLimit=QUANTITY)),
    fields("name secret", name=NAME,
           secret=fields("secretName", secretName=NAME, defaultMode=NUMBER))]}
SPREAD = fields("maxSkew topologyKey whenUnsatisfiable", maxSkew=NUMBER, topologyKey=TEXT,
                whenUnsatisfiable=one_of("DoNotSchedule", "ScheduleAnyway"),
                labelSelector=SELECTOR)
POD = fields(
    "containers", automountServiceAccountToken=YES, terminationGracePeriodSeconds=NUMBER,
    securityContext=fields(
        runAsNonRoot=YES, runAsUser=NUMBER, runAsGroup=NUMBER, fsGroup=NUMBER,
        fsGroupChangePolicy=one_of("OnRootMismatch", "Always"),
        seccompProfile=fields("type", type=one_of("RuntimeDefault", "Unconfined"))),
    affinity=fields(podAntiAffinity=fields(requiredDuringSchedulingIgnoredDuringExecution=many(
        fields("topologyKey labelSelector", topologyKey=TEXT, labelSelector=SELECTOR)))),
    topologySpreadConstraints=many(SPREAD), containers=many(CONTAINER), volumes=many(VOLUME))
TEMPLATE = fields("metadata spec", metadata=fields("labels", labels=LABELS), spec=POD)
KINDS = {
    ("v1", "Namespace"): None,
    ("v1", "Service"): fields(
        "ports selector", clusterIP=one_of("None"), publishNotReadyAddresses=YES, selector=LABELS,
        ports=many(fields("port", name=dict(NAME, maxLength=15), port=PORT,
                          protocol=one_of("TCP")))),
    ("policy/v1", "PodDisruptionBudget"): fields("selector", maxUnavailable=NUMBER,
                                                 selector=SELECTOR),
    ("apps/v1", "StatefulSet"): fields(
        "serviceName selector template", replicas=NUMBER, serviceName=NAME, selector=SELECTOR,
        podManagementPolicy=one_of("OrderedReady", "Parallel"),
        updateStrategy=fields("type", type=one_of("RollingUpdate", "OnDelete")), template=TEMPLATE,
        volumeClaimTemplates=many(fields("metadata spec", metadata=META, spec=fields(
            "accessModes resources", accessModes=TEXTS,
            resources=fields("requests", requests=AMOUNTS))))),
    ("apps/v1", "Deployment"): fields(
        "selector template", replicas=NUMBER, selector=SELECTOR, template=TEMPLATE,
        strategy=fields("type", type=one_of("RollingUpdate", "Recreate"),
                        rollingUpdate=fields(maxSurge=NUMBER, maxUnavailable=NUMBER))),
}


def documents():
    return [each for path in sorted(FOLDER.glob("*.yaml"))
            for each in yaml.safe_load_all(path.read_text()) if each]


def of_kind(kind):
    return next(each for each in documents() if each["kind"] == kind)


def pods():
    return [each["spec"]["template"] for each in documents()
            if each["kind"] in ("StatefulSet", "Deployment")]


def mirror():
    return of_kind("StatefulSet")["spec"]["template"]["spec"]


def gibibytes(text):
    return int(re.fullmatch(r"(\d+)Gi?", text)[1])


def validate(document):
    spec = KINDS[document["apiVersion"], document["kind"]]
    known = {"apiVersion": TEXT, "kind": TEXT, "metadata": META}
    jsonschema.validate(document, fields("metadata spec", spec=spec, **known) if spec
                        else fields("metadata", **known))


@pytest.mark.parametrize("document", documents(), ids=lambda each: each["kind"])
def test_it_has_what_the_api_has_there(document):
    validate(document)
    if document["kind"] != "Namespace":
        assert document["metadata"]["namespace"] == of_kind("Namespace")["metadata"]["name"]


def test_the_schema_refuses_a_field_in_another_place():
    document = of_kind("StatefulSet")
    document["spec"]["template"]["spec"]["readinessProbe"] = {}
    with pytest.raises(jsonschema.ValidationError):
        validate(document)


def test_selectors_find_the_pods():
    for each in documents():
        if each["kind"] in ("StatefulSet", "Deployment"):
            labels = each["spec"]["template"]["metadata"]["labels"]
            assert each["spec"]["selector"]["matchLabels"] == labels
            for rule in each["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"][
                    "requiredDuringSchedulingIgnoredDuringExecution"]:
                assert rule["labelSelector"]["matchLabels"] == labels
    labels = of_kind("StatefulSet")["spec"]["selector"]["matchLabels"]
    assert of_kind("Service")["spec"]["selector"] == labels
    assert of_kind("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels


def test_volumes_and_ports_are_there():
    claims = {each["metadata"]["name"]
              for each in of_kind("StatefulSet")["spec"]["volumeClaimTemplates"]}
    for pod in pods():
        volumes = {each["name"] for each in pod["spec"]["volumes"]} | claims
        for container in pod["spec"]["containers"]:
            assert {each["name"] for each in container["volumeMounts"]} <= volumes
            ports = {each["name"] for each in container.get("ports", [])}
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                if probe in container:
                    assert container[probe]["httpGet"]["port"] in ports


def test_nothing_needs_root():
    for pod in pods():
        assert pod["spec"]["securityContext"]["runAsNonRoot"]
        assert pod["spec"]["securityContext"]["runAsUser"] == 7170
        for container in pod["spec"]["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]}}


def test_images_are_of_this_version():
    for pod in pods():
        for container in pod["spec"]["containers"]:
            assert container["image"].endswith(":" + VERSION)


def test_names_of_mirrors_are_those_of_the_service():
    """The records are _NAME-OF-PORT._tcp.SERVICE.NAMESPACE.svc.cluster.local."""
    service = of_kind("Service")
    domain = "%(name)s.%(namespace)s.svc.cluster.local" % service["metadata"]
    assert of_kind("StatefulSet")["spec"]["serviceName"] == service["metadata"]["name"]
    assert {"name": "perseas", "port": 7170, "protocol": "TCP"} in service["spec"]["ports"]
    # A mirror has a record while it loads and while it waits.
    assert service["spec"]["publishNotReadyAddresses"] and service["spec"]["clusterIP"] == "None"
    for pod in pods():
        env = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
        assert env["PERSEAS_MIRRORS"] == "srv://" + domain
        assert env.get("PERSEAS_SELF") in (None, "$(POD)." + domain + ":7170")


def test_the_daemon_takes_its_arguments(tmp_path):
    """It gets as far as the certificates, which are missing."""
    container = mirror()["containers"][0]
    kept = ["--spill-dir=/var/lib/perseas/spill", "--state-dir=/var/lib/perseas/state"]
    assert set(kept) <= set(container["args"])
    words = [word.replace("$(NODE)", "node").replace("/etc/perseas", str(tmp_path))
             for word in container["args"] if word not in kept]
    done = subprocess.run(
        [BUILD / "perseasd", *words, "--spill-dir=%s/spill" % tmp_path,
         "--memory-dir=%s/memory" % tmp_path, "--unsafe-memory-on-disk=on"],
        stderr=subprocess.PIPE, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 1 and str(tmp_path / "tls") in done.stderr, done.stderr


def test_memory_is_enough_for_the_images():
    """The volume has room for the images that --max-memory allows, plus a sixteenth for the
    daemon."""
    container, = mirror()["containers"]
    images, = [gibibytes(word.partition("=")[2]) for word in container["args"]
               if word.startswith("--max-memory")]
    volume, = [gibibytes(each["emptyDir"]["sizeLimit"]) for each in mirror()["volumes"]
               if "emptyDir" in each]
    limit = container["resources"]["limits"]["memory"]
    assert container["resources"]["requests"]["memory"] == limit
    assert images < volume <= gibibytes(limit) * 15 / 16


def test_no_mirror_ends_before_the_one_before_is_copied():
    """There is also enough time to write the images to disk."""
    container, = mirror()["containers"]
    script, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
    assert (TOP / "deploy/container" / script.rpartition("/")[2]).exists()
    assert int(seconds) + 300 <= mirror()["terminationGracePeriodSeconds"]
    assert of_kind("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
