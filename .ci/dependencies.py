#!/usr/bin/env python3
"""Checks licenses, sources and duplicate versions of all dependencies by deny.toml, as cargo-deny does."""
import json
import re
import subprocess
import sys
import tomllib

with open("deny.toml", "rb") as file:
    rules = tomllib.load(file)
metadata = json.loads(subprocess.check_output(["cargo", "metadata", "--format-version=1", "--locked"]))
exceptions = {e["crate"]: e["allow"] for e in rules["licenses"]["exceptions"]}
registries = {"registry+" + address for address in rules["sources"]["allow-registry"]}


def is_allowed(expression, allowed):
    """Evaluates an SPDX expression, in which / is an old form of OR."""
    words = re.findall(r"[()]|[^\s()]+(?: WITH [^\s()]+)?", expression.replace("/", " OR "))
    operators = {"OR": "or", "AND": "and", "(": "(", ")": ")"}
    return eval(" ".join(operators.get(word, str(word in allowed)) for word in words))


faults = []
versions = {}
dependencies = [package for package in metadata["packages"] if package["source"] is not None]
for package in dependencies:
    name = package["name"]
    allowed = rules["licenses"]["allow"] + exceptions.get(name, [])
    if not is_allowed(package["license"] or "none", allowed):
        faults.append(f"{name} has the license {package['license']}, which deny.toml does not allow")
    if package["source"] not in registries:
        faults.append(f"{name} comes from {package['source']}")
    versions.setdefault(name, []).append(package["version"])
for name, found in versions.items():
    if len(found) > 1:
        print(f"warning: {name} has versions {', '.join(sorted(found))}")
print(f"{len(dependencies)} dependencies, {len(faults)} faults")
sys.exit("\n".join(faults) or None)
