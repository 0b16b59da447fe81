#!/usr/bin/env bash
# Builds the images of the real servers: images.sh [naive-cuda]
#
# Without an argument: assay/vllm-cpu:0.22.1 and assay/naive:1, for a CPU. With
# naive-cuda: assay/naive-cuda:1 on top of vllm/vllm-openai. Images that are
# there are left alone; `docker rmi` one to have it built again.
set -euo pipefail
cd "$(dirname "$0")/../harness/engine/images"

have() { docker image inspect "$1" >/dev/null 2>&1; }

docker info >/dev/null 2>&1 || {
	echo "Docker does not answer: install it (apt-get install docker.io iptables) and start dockerd" >&2
	exit 1
}

# base prints the image that everything stands on: the public one, or, where
# no image registry can be reached, the same Debian made here.
base() {
	local public=python:3.11-slim-bookworm own=assay/base:bookworm root
	if have "$own"; then echo "$own"; return; fi
	if have "$public" || timeout 120 docker pull -q "$public" >/dev/null 2>&1; then echo "$public"; return; fi
	command -v debootstrap >/dev/null || {
		echo "no image registry answers and debootstrap is missing: apt-get install debootstrap" >&2
		return 1
	}
	echo "no image registry answers: making a base image with debootstrap" >&2
	root=$(mktemp -d)
	trap 'rm -rf "$root"' RETURN
	debootstrap --variant=minbase --include=python3,python3-venv,python3-dev,ca-certificates,g++,curl bookworm "$root" >&2
	# The host may trust certificates of its own network.
	cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
	tar -C "$root" -c . | docker import - "$own" >/dev/null
	echo "$own"
}

# build NAME FOLDER BASE: with what pip and uv are told on this host.
build() {
	local name=$1 folder=$2 from=$3 arguments=() variable
	have "$name" && { echo "$name is there"; return; }
	for variable in PIP_INDEX_URL PIP_EXTRA_INDEX_URL UV_INDEX_URL HTTP_PROXY HTTPS_PROXY NO_PROXY; do
		[ -z "${!variable:-}" ] || arguments+=(--build-arg "$variable")
	done
	echo "building $name on $from"
	docker build --network host --build-arg BASE="$from" "${arguments[@]}" -t "$name" "$folder"
}

case ${1:-cpu} in
cpu)
	have assay/vllm-cpu:0.22.1 || build assay/vllm-cpu:0.22.1 vllm-cpu "$(base)"
	build assay/naive:1 naive assay/vllm-cpu:0.22.1
	;;
naive-cuda)
	have vllm/vllm-openai:v0.29.0 || docker pull vllm/vllm-openai:v0.29.0
	build assay/naive-cuda:1 naive vllm/vllm-openai:v0.29.0
	;;
*)
	echo "usage: images.sh [naive-cuda], not $1" >&2
	exit 2
	;;
esac
