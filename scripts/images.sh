#!/usr/bin/env bash
# Builds the images of the real servers: images.sh [naive-cuda]
#
# Without an argument: assay/vllm-cpu:0.22.1 and assay/naive:1, for a CPU. With
# naive-cuda: assay/naive-cuda:1 on top of vllm/vllm-openai. An image that was
# built from what is here now, on the base that is there now, is left alone; a
# label of it says so.
#
# What pip is told on this host by its environment or its configuration
# (index, certificates, proxies) is passed on to the build, and shows in the
# history of an image made with it: keep such an image to yourself.
set -euo pipefail
cd "$(dirname "$0")/../harness/engine/images"

readonly label=assay.source
# The server that the naive one is compared with; a plan may name another.
readonly vllm_cuda=${VLLM_IMAGE:-vllm/vllm-openai:v0.29.0}

have() { docker image inspect "$1" >/dev/null 2>&1; }

docker info >/dev/null 2>&1 || {
	echo "Docker does not answer: install it (apt-get install docker.io iptables), start dockerd, and see that this user may speak to it" >&2
	exit 1
}

# base prints the image that everything stands on: the public one, or, where
# no image registry can be reached, the same Debian made here.
base() {
	local public=python:3.11-slim-bookworm own=assay/base:bookworm
	if have "$own"; then echo "$own"; return; fi
	if have "$public" || timeout 300 docker pull -q "$public" >/dev/null 2>&1; then echo "$public"; return; fi
	debian "$own"
	echo "$own"
}

# debian NAME: a minimal Debian with Python as an image.
debian() (
	command -v debootstrap >/dev/null || {
		echo "no image registry answers and debootstrap is missing: apt-get install debootstrap" >&2
		exit 1
	}
	[ "$(id -u)" = 0 ] || {
		echo "no image registry answers, and debootstrap needs root: run this as root once" >&2
		exit 1
	}
	echo "no image registry answers: making a base image with debootstrap" >&2
	root=$(mktemp -d)
	trap 'rm -rf "$root"' EXIT
	debootstrap --variant=minbase --include=python3,python3-venv,python3-dev,ca-certificates,g++,curl bookworm "$root" >&2
	# The host may trust certificates of its own network.
	cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
	rm -rf "$root"/var/cache/apt/archives/*.deb
	tar -C "$root" -c . | docker import --change 'CMD ["python3"]' - "$1" >/dev/null
)

# source_of FOLDER BASE: a digest of what an image is made of.
source_of() {
	{
		find "$1" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
		docker image inspect -f '{{.Id}}' "$2"
	} | sha256sum | cut -d ' ' -f 1
}

# build NAME FOLDER BASE
build() {
	local name=$1 folder=$2 from=$3 source variable value arguments=()
	source=$(source_of "$folder" "$from")
	if [ "$(docker image inspect -f "{{index .Config.Labels \"$label\"}}" "$name" 2>/dev/null)" = "$source" ]; then
		echo "$name is there"
		return
	fi
	for variable in HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy; do
		[ -z "${!variable:-}" ] || arguments+=(--build-arg "$variable")
	done
	for variable in PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST; do
		value=${!variable:-$(ambient "$variable")}
		[ -z "$value" ] || arguments+=(--build-arg "$variable=$value")
	done
	echo "building $name on $from"
	# The host's network: its own name server and proxies are reached, too.
	docker build --network host --build-arg BASE="$from" "${arguments[@]}" --label "$label=$source" -t "$name" "$folder"
}

# ambient PIP_INDEX_URL: what pip's configuration files say of index-url.
ambient() {
	local key=${1#PIP_}
	key=${key,,}
	python3 -m pip config get "global.${key//_/-}" 2>/dev/null || true
}

# reach NAME: an image that is only ever pulled.
reach() {
	have "$1" || docker pull "$1" || {
		echo "$1 can't be pulled: see that its registry is reached, or docker load it" >&2
		exit 1
	}
}

case ${1:-cpu} in
cpu)
	build assay/vllm-cpu:0.22.1 vllm-cpu "$(base)"
	build assay/naive:1 naive assay/vllm-cpu:0.22.1
	;;
naive-cuda)
	reach "$vllm_cuda"
	build assay/naive-cuda:1 naive "$vllm_cuda"
	;;
*)
	echo "usage: images.sh [naive-cuda], not $1" >&2
	exit 2
	;;
esac
