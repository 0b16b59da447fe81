//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// contender is a load client under measurement.
type contender struct {
	name, version string
	missing       string // why it can't be run
	command       func(j job) (*exec.Cmd, error)
	// read takes what it reports from its standard output or from the files
	// that it wrote into the job's folder.
	read func(j job, out []byte) (reported, error)
}

func inThisProgram(name, role string) contender {
	return contender{
		name:    name,
		command: func(j job) (*exec.Cmd, error) { return own(role, j) },
		read: func(_ job, out []byte) (r reported, err error) {
			return r, json.Unmarshal(out, &r)
		},
	}
}

const plainName, oursName = "plain net/http", "this client"

// contenders are the two of this program, the plain one first, and the peers.
func contenders(ownOnly bool) []contender {
	out := []contender{inThisProgram(plainName, "plain"), inThisProgram(oursName, "ours")}
	if ownOnly {
		return out
	}
	for _, p := range peers {
		out = append(out, p.contender())
	}
	return out
}

// peer is somebody else's load client, installed by scripts/peers.sh.
type peer struct {
	name, folder string
	arguments    func(j job) ([]string, error) // of the program in its environment
	environment  func(j job) []string
	read         func(j job, out []byte) (reported, error)
}

var peers = []peer{vllm, guidellm, aiperf, inferencePerf}

// peersFolder is where scripts/peers.sh puts them; `make` runs this in the
// module's root.
const peersFolder = ".cache/peers"

// tokenizer is a folder with the tokenizer that the peers need.
const tokenizer = peersFolder + "/hub/models--local--smollm2/snapshots/0000000000000000000000000000000000000000"

func (p peer) contender() contender {
	c := contender{name: p.name, read: p.read}
	venv := filepath.Join(peersFolder, p.folder)
	version, err := os.ReadFile(filepath.Join(venv, "installed"))
	if err != nil {
		c.missing = notInstalled(p.folder)
		return c
	}
	if _, err := os.Stat(filepath.Join(tokenizer, "tokenizer.json")); err != nil {
		c.missing = "it needs a tokenizer: " + notInstalled("tokenizer")
		return c
	}
	c.version = strings.TrimSpace(string(version))
	c.command = func(j job) (*exec.Cmd, error) {
		arguments, err := p.arguments(j)
		if err != nil {
			return nil, err
		}
		program, err := filepath.Abs(filepath.Join(venv, "bin", arguments[0]))
		if err != nil {
			return nil, err
		}
		hub, err := filepath.Abs(filepath.Join(peersFolder, "hub"))
		if err != nil {
			return nil, err
		}
		command := exec.Command(program, arguments[1:]...)
		command.Env = append(os.Environ(), "HF_HUB_CACHE="+hub, "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "HF_DATASETS_OFFLINE=1",
			"TOKENIZERS_PARALLELISM=false", "VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1", "NO_PROXY=*", "no_proxy=*")
		if p.environment != nil {
			command.Env = append(command.Env, p.environment(j)...)
		}
		return command, nil
	}
	return c
}

// notInstalled is why something is not there, as scripts/peers.sh left it.
func notInstalled(what string) string {
	const remedy = "make bench-peers installs it"
	why, err := os.ReadFile(filepath.Join(peersFolder, what+".why"))
	if err != nil {
		return "not installed: " + remedy
	}
	return fmt.Sprintf("it could not be installed: %s; %s", strings.TrimSpace(string(why)), remedy)
}

// fromFile decodes the one file that matches a pattern in a job's folder.
func fromFile(j job, pattern string, into any) error {
	files, err := filepath.Glob(filepath.Join(j.dir, pattern))
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return fmt.Errorf("it left %d files %s, and one was expected", len(files), pattern)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}
