package engine_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/engine"
)

func TestSecretsAreHiddenFromArguments(t *testing.T) {
	const gone = "[redacted secret]"
	for name, c := range map[string]struct{ args, want []string }{
		"none":         {nil, []string{}},
		"nothing":      {[]string{"/model", "--max-model-len", "2048"}, []string{"/model", "--max-model-len", "2048"}},
		"apart":        {[]string{"--api-key", "k", "--port", "1"}, []string{"--api-key", gone, "--port", "1"}},
		"joined":       {[]string{"--api-key=k=v"}, []string{"--api-key=" + gone}},
		"several keys": {[]string{"--api-key", "k1", "k2", "--dtype", "half"}, []string{"--api-key", gone, gone, "--dtype", "half"}},
		"hub token":    {[]string{"--hf-token", "t"}, []string{"--hf-token", gone}},
		"a count":      {[]string{"--max-tokens", "12", "--tokenizer", "x"}, []string{"--max-tokens", "12", "--tokenizer", "x"}},
		"at the end":   {[]string{"--api-key"}, []string{"--api-key"}},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(engine.HideSecrets(c.args)).To(Equal(c.want)) })
	}
	given := []string{"--api-key", "k"}
	engine.HideSecrets(given)
	NewWithT(t).Expect(given).To(Equal([]string{"--api-key", "k"}), "the server still gets it")
}
