package engine

import (
	"regexp"
	"strings"
)

// secretFlag matches an option whose value nobody but the server should see.
var secretFlag = regexp.MustCompile(`(?i)^--?[a-z0-9_-]*(api[-_]?keys?|secret|token|password|passwd|credentials?)$`)

const hidden = "[redacted secret]"

// HideSecrets returns a command line's arguments with the values of options
// such as --api-key blacked out, in either way to write them.
func HideSecrets(args []string) []string {
	out := append([]string{}, args...)
	for i, a := range out {
		name, _, joined := strings.Cut(a, "=")
		switch {
		case !secretFlag.MatchString(name):
		case joined:
			out[i] = name + "=" + hidden
		default:
			// vLLM takes several keys behind one --api-key.
			for j := i + 1; j < len(out) && !strings.HasPrefix(out[j], "-"); j++ {
				out[j] = hidden
			}
		}
	}
	return out
}
