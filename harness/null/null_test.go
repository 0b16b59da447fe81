package null_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/null"
)

func TestAServerKeepsWhatItDid(t *testing.T) {
	g := NewWithT(t)
	server := null.New(null.Pace{Tokens: 3, First: 20 * time.Millisecond, Gap: 10 * time.Millisecond})
	l, err := server.Listen("127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { l.Close() })
	response, err := http.Post("http://"+l.Addr().String()+"/v1/chat/completions", "application/json", strings.NewReader(`{}`))
	g.Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Count(body, []byte(`"token_ids"`))).To(Equal(3))
	g.Expect(bytes.HasSuffix(body, []byte("data: [DONE]\n\n"))).To(BeTrue())
	g.Eventually(server.Answered).Should(HaveLen(1))
	s := server.Answered()[0]
	g.Expect(s.Tokens).To(Equal(3))
	g.Expect(time.Duration(s.First - s.Received)).To(BeNumerically(">=", 19*time.Millisecond))
	g.Expect(time.Duration(s.Last - s.First)).To(BeNumerically(">=", 19*time.Millisecond))
}

func TestACompletionHasItsOwnShape(t *testing.T) {
	g := NewWithT(t)
	l, err := null.New(null.Pace{Tokens: 2}).Listen("127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { l.Close() })
	response, err := http.Post("http://"+l.Addr().String()+"/v1/completions", "application/json", strings.NewReader(`{}`))
	g.Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Count(body, []byte(`"text":" word"`))).To(Equal(2))
	g.Expect(body).NotTo(ContainSubstring("delta"))
}

func TestAPathAsksForItsOwnPace(t *testing.T) {
	g := NewWithT(t)
	l, err := null.New(null.Pace{Tokens: 3}).Listen("127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { l.Close() })
	asked := null.Pace{Tokens: 2, Stamped: true}
	response, err := http.Post("http://"+l.Addr().String()+asked.Path(), "application/json", strings.NewReader(`{}`))
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	events := 0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), `"token_ids"`) {
			events++
			g.Expect(lines.Text()).To(MatchRegexp(`"content":"\d{19}"`), "the time of its writing is its text")
		}
	}
	g.Expect(events).To(Equal(2))
}
