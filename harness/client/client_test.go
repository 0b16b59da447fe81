package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/metric"
	"assay/harness/record"
)

// serve answers every connection with a script, raw bytes on a raw connection,
// and counts the requests that came.
func serve(t *testing.T, script func(conn *net.TCPConn)) (client.Target, *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var requests atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				request, err := http.ReadRequest(newReader(conn))
				if err != nil {
					return
				}
				requests.Add(1)
				_, _ = io.Copy(io.Discard, request.Body)
				script(conn.(*net.TCPConn))
			}()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return client.Target{BaseURL: "http://" + l.Addr().String()}, &requests
}

const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

func write(conn net.Conn, parts ...string) {
	for _, p := range parts {
		_, _ = io.WriteString(conn, p)
	}
}

func token(text string, id int) string {
	return fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":%q},\"token_ids\":[%d]}]}\n\n", text, id)
}

const finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
const done = "data: [DONE]\n\n"

func usage(n int) string {
	return fmt.Sprintf("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":%d}}\n\n", n)
}

func request(t *testing.T) client.Request {
	r, err := client.NewChatRequest(client.Params{Model: "m", Messages: []client.Message{{Role: "user", Content: "Hi"}}, MaxTokens: 8, TopP: 1, TokenIDs: true})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return r
}

// attempt makes one attempt and decodes it, as a wave does.
func attempt(t *testing.T, ctx context.Context, c *client.Client, target client.Target, timeout time.Duration) record.Request {
	t.Helper()
	clk := clock.Start()
	before := clk.Read()
	return after(t, ctx, c.Dial(ctx, target), clk, before, timeout)
}

// after makes the attempt on a connection that was opened.
func after(t *testing.T, ctx context.Context, conn *client.Conn, clk clock.Clock, before clock.Reading, timeout time.Duration) record.Request {
	t.Helper()
	raw := conn.Do(ctx, clk, clk.Now(), timeout, request(t))
	conversion := clock.Conversion{First: before, Last: clk.Read()}
	var r record.Request
	raw.Decode(&r, &conversion)
	NewWithT(t).Expect(metric.Broken(r)).To(BeEmpty(), "no attempt contradicts itself")
	return r
}

func TestOutcomes(t *testing.T) {
	stream := func(parts ...string) func(*net.TCPConn) {
		return func(conn *net.TCPConn) { write(conn, append([]string{head}, parts...)...) }
	}
	for _, test := range []struct {
		name    string
		script  func(*net.TCPConn)
		outcome record.Outcome
		says    string
		text    string
		tokens  int // -1: null
		source  string
	}{
		{"a whole answer", stream(token("a", 1), token("b", 2), finish, usage(2), done), record.OK, "", "ab", 2, "token_ids"},
		{"a finish reason and no [DONE]", stream(token("a", 1), finish), record.OK, "", "a", 1, "token_ids"},
		{"neither a finish reason nor [DONE]", stream(token("a", 1), token("b", 2)), record.Truncated, "without [DONE]", "ab", 2, "token_ids"},
		{"an empty answer", stream(finish, usage(0), done), record.OK, "", "", 0, "token_ids"},
		{"no bytes at all", stream(), record.Truncated, "after 0 events", "", -1, ""},
		{"an error under HTTP 200", stream(token("a", 1), "data: {\"error\":{\"message\":\"boom\"}}\n\n", done), record.StreamError, "boom", "a", 1, "token_ids"},
		{"an event that is no JSON", stream(token("a", 1), "data: {\"choices\":[}\n\n", done), record.StreamError, "no JSON", "a", 1, "token_ids"},
		{"an answer that is no stream", func(c *net.TCPConn) {
			write(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"error\":\"busy\"}")
		}, record.StreamError, "busy", "", -1, ""},
		{"usage alone", stream("data: {\"choices\":[{\"delta\":{\"content\":\"a b\"}}]}\n\n", usage(7), done), record.OK, "", "a b", 7, "usage"},
		{"some tokens without their ids", stream(token("a", 1), "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n", usage(2), done), record.OK, "", "ab", 2, "usage"},
		{"no count of any kind", stream("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", done), record.OK, "", "a", -1, ""},
		{"a status that is an error", func(c *net.TCPConn) {
			write(c, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\nbusy")
		}, record.HTTPError, "HTTP 429: busy", "", -1, ""},
		{"a redirect is not followed", func(c *net.TCPConn) {
			write(c, "HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
		}, record.HTTPError, "HTTP 307", "", -1, ""},
		{"a connection closed before an answer", func(c *net.TCPConn) {}, record.ConnectError, "no HTTP answer", "", -1, ""},
		{"a chunked answer cut short", func(c *net.TCPConn) {
			write(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n", chunked(token("a", 1)))
		}, record.Truncated, "closed inside", "a", 1, "token_ids"},
		{"early hints come first", func(c *net.TCPConn) {
			write(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", head, token("a", 1), finish, done)
		}, record.OK, "", "a", 1, "token_ids"},
		{"an error in a field of that name", stream(token("a", 1), "error: {\"code\":500,\"message\":\"slot lost\"}\n\n"), record.StreamError, "slot lost", "a", 1, "token_ids"},
		{"an event of the kind error", stream(token("a", 1), "event: error\ndata: {\"message\":\"boom\"}\n\n"), record.StreamError, "boom", "a", 1, "token_ids"},
		{"an object that is an error", stream(token("a", 1), "data: {\"object\":\"error\",\"message\":\"boom\"}\n\n"), record.StreamError, "boom", "a", 1, "token_ids"},
		{"a field of the wrong kind", stream("data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"token_ids\":[1]}],\"usage\":\"lots\"}\n\n", done), record.StreamError, "no JSON", "a", 1, "token_ids"},
		{"an encoding that nobody asked for", func(c *net.TCPConn) {
			write(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b")
		}, record.StreamError, "gzip", "", -1, ""},
		{"a type with a broken parameter", func(c *net.TCPConn) {
			write(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset\r\n\r\n", token("a", 1), done)
		}, record.OK, "", "a", 1, "token_ids"},
		{"an answer that is no HTTP", func(c *net.TCPConn) { write(c, "SSH-2.0-OpenSSH_9.2\r\n\r\n") }, record.StreamError, "malformed", "", -1, ""},
		{"more than the declared length", func(c *net.TCPConn) {
			body := token("a", 1) + finish
			write(c, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n", len(body)), body, token("b", 2))
		}, record.OK, "", "a", 1, "token_ids"},
		{"reasoning under both of its names", stream("data: {\"choices\":[{\"delta\":{\"reasoning\":\"hm\",\"reasoning_content\":\"hm\"}}]}\n\n", usage(1), done), record.OK, "", "", 1, "usage"},
		{"HTTP/1.0", func(c *net.TCPConn) {
			write(c, "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", token("a", 1), finish, done)
		}, record.OK, "", "a", 1, "token_ids"},
		{"reasoning and tool calls are tokens", stream(
			"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm \"}}]}\n\n",
			"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n", usage(4), done),
			record.OK, "", "", 4, "usage"},
		{"plain completions", stream("data: {\"choices\":[{\"text\":\"a\",\"token_ids\":[5],\"finish_reason\":\"length\"}]}\n\n", done), record.OK, "", "a", 1, "token_ids"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			target, requests := serve(t, test.script)
			r := attempt(t, t.Context(), client.New(), target, 5*time.Second)
			g.Expect(r.Outcome).To(Equal(test.outcome), "%v", r.Error)
			if test.says == "" {
				g.Expect(r.Error).To(BeNil())
			} else {
				g.Expect(r.Error).To(HaveValue(ContainSubstring(test.says)))
			}
			g.Expect(r.OutputText).To(Equal(test.text))
			if test.tokens < 0 {
				g.Expect(r.OutputTokens).To(BeNil())
				g.Expect(r.Nulls).To(HaveKey("output_tokens"))
			} else {
				g.Expect(r.OutputTokens).To(HaveValue(Equal(test.tokens)))
				g.Expect(r.OutputTokensSource).To(HaveValue(Equal(test.source)))
			}
			g.Expect(requests.Load()).To(Equal(int64(1)), "there is one try, whatever happens")
		})
	}
}

// watch calls seen with all that the client has read so far, after each read.
func watch(seen func(read string)) client.Option {
	return client.WithConn(func(c net.Conn) net.Conn { return &watched{Conn: c, seen: seen} })
}

type watched struct {
	net.Conn
	read strings.Builder
	seen func(string)
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.read.Write(p[:n])
		w.seen(w.read.String())
	}
	return n, err
}

func chunked(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func TestAFailedAttemptKeepsEverythingItSaw(t *testing.T) {
	g := NewWithT(t)
	target, _ := serve(t, func(c *net.TCPConn) {
		write(c, head, token("a", 1), token("b", 2))
		hold(c)
	})
	r := attempt(t, t.Context(), client.New(), target, 300*time.Millisecond)
	g.Expect(r.Outcome).To(Equal(record.Timeout))
	g.Expect(r.FirstTokenAt).NotTo(BeNil())
	g.Expect(r.OutputText).To(Equal("ab"))
	g.Expect(r.OutputTokenIDs).To(Equal([]int{1, 2}))
	g.Expect(r.EndedAt - r.ScheduledAt).To(BeNumerically(">=", 300*time.Millisecond))
	latency, _ := metric.Latency(r)
	ttft, _ := metric.TTFT(r)
	g.Expect(ttft).To(BeNumerically("<", latency))
}

// hold keeps a connection open until the client leaves it.
func hold(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }

func TestAStoppedRunCancelsWhatIsUnderWay(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	target, _ := serve(t, func(c *net.TCPConn) {
		write(c, head, token("a", 1))
		hold(c)
	})
	c := client.New(watch(func(read string) {
		if strings.HasSuffix(read, token("a", 1)) {
			cancel()
		}
	}))
	r := attempt(t, ctx, c, target, time.Minute)
	g.Expect(r.Outcome).To(Equal(record.Cancelled))
	g.Expect(r.OutputText).To(Equal("a"))

	r = attempt(t, ctx, c, target, time.Minute) // nothing is sent once the run has stopped
	g.Expect(r.Outcome).To(Equal(record.Cancelled))
	g.Expect(r.SentAt).To(BeNil())
}

func TestWhatWasCompleteStaysOKWhenTheRunIsStopped(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	target, _ := serve(t, func(c *net.TCPConn) {
		write(c, head, token("a", 1), finish, done)
		hold(c)
	})
	c := client.New(client.WithLinger(time.Minute), watch(func(read string) {
		if strings.HasSuffix(read, done) {
			time.AfterFunc(0, cancel) // while the client waits for the end of the response
		}
	}))
	r := attempt(t, ctx, c, target, 2*time.Second)
	g.Expect(r.Outcome).To(Equal(record.OK), "%v", r.Error)
}

func TestAResetKeepsWhatCameBefore(t *testing.T) {
	g := NewWithT(t)
	arrived := make(chan struct{})
	target, _ := serve(t, func(c *net.TCPConn) {
		write(c, head, token("a", 1))
		<-arrived
		_ = c.SetLinger(0)
	})
	c := client.New(watch(func(read string) {
		if strings.HasSuffix(read, token("a", 1)) {
			close(arrived)
		}
	}))
	r := attempt(t, t.Context(), c, target, 5*time.Second)
	g.Expect(r.Outcome).To(Equal(record.StreamError))
	g.Expect(r.Error).To(HaveValue(ContainSubstring("reset")))
	g.Expect(r.FirstTokenAt).NotTo(BeNil())
	g.Expect(r.OutputText).To(Equal("a"))
	g.Expect(r.OutputTokens).To(HaveValue(Equal(1)))
}

func TestARefusalBeforeTheWholeRequestWasReadIsHeard(t *testing.T) {
	g := NewWithT(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	go func() {
		for _, answer := range []string{"HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo much", ""} {
			c, err := l.Accept()
			if err != nil {
				return
			}
			write(c, answer)
			_ = c.Close() // with most of the request unread: the client's writes break
		}
	}()
	request, err := client.NewChatRequest(client.Params{Model: "m", MaxTokens: 1, TopP: 1,
		Messages: []client.Message{{Role: "user", Content: strings.Repeat("x", 16<<20)}}})
	g.Expect(err).NotTo(HaveOccurred())
	ask := func() (r record.Request) {
		clk := clock.Start()
		client.New().Dial(t.Context(), client.Target{BaseURL: "http://" + l.Addr().String()}).
			Do(t.Context(), clk, clk.Now(), 10*time.Second, request).Decode(&r, nil)
		return r
	}
	r := ask()
	g.Expect(r.Outcome).To(Equal(record.HTTPError), "%v", r.Error)
	g.Expect(r.Error).To(HaveValue(ContainSubstring("too much")))
	r = ask()
	g.Expect(r.Outcome).To(Equal(record.ConnectError), "%v", r.Error)
	g.Expect(r.Error).To(HaveValue(ContainSubstring("could not be written")))
}

func TestATargetThatCannotBeSpokenToIsSaidSo(t *testing.T) {
	for url, says := range map[string]string{"ftp://127.0.0.1": "ftp", "http://%zz": "no URL", "127.0.0.1:80": "no URL"} {
		g := NewWithT(t)
		r := attempt(t, t.Context(), client.New(), client.Target{BaseURL: url}, time.Second)
		g.Expect(r.Outcome).To(Equal(record.ConnectError))
		g.Expect(r.Error).To(HaveValue(ContainSubstring(says)), url)
	}
}

func TestNoServerIsAConnectError(t *testing.T) {
	g := NewWithT(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.Close()).To(Succeed())
	r := attempt(t, t.Context(), client.New(), client.Target{BaseURL: "http://" + l.Addr().String()}, time.Second)
	g.Expect(r.Outcome).To(Equal(record.ConnectError))
	g.Expect(r.SentAt).To(BeNil())
	g.Expect(r.Nulls).To(HaveKeyWithValue("sent_at_ns", ContainSubstring("could not be opened")))
}

func TestAServerThatNeverStopsIsBounded(t *testing.T) {
	g := NewWithT(t)
	line := token("word", 7)
	target, _ := serve(t, func(c *net.TCPConn) {
		write(c, head)
		for {
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := attempt(t, t.Context(), client.New(client.WithMaxBytes(1<<20)), target, time.Minute)
	runtime.ReadMemStats(&after)
	g.Expect(r.Outcome).To(Equal(record.StreamError))
	g.Expect(r.Error).To(HaveValue(ContainSubstring("larger than the client keeps")))
	g.Expect(r.ReceivedBytes).To(BeNumerically("<=", 1<<20))
	g.Expect(r.OutputText).NotTo(BeEmpty())
	g.Expect(after.HeapAlloc).To(BeNumerically("<", before.HeapAlloc+64<<20))
}

func TestAHeaderThatNeverStopsIsBounded(t *testing.T) {
	g := NewWithT(t)
	target, _ := serve(t, func(c *net.TCPConn) {
		write(c, "HTTP/1.1 200 OK\r\n")
		for {
			if _, err := io.WriteString(c, "X-More: and more\r\n"); err != nil {
				return
			}
		}
	})
	r := attempt(t, t.Context(), client.New(client.WithMaxBytes(1<<18)), target, time.Minute)
	g.Expect(r.Outcome).To(Equal(record.StreamError))
	g.Expect(r.ReceivedBytes).To(BeNumerically("<=", 1<<18))
}

func TestTheLimitGoesByTheRequest(t *testing.T) {
	g := NewWithT(t)
	line := ":" + strings.Repeat(" ", 1<<16) + "\n"
	target, _ := serve(t, func(c *net.TCPConn) {
		write(c, head)
		for {
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
	})
	r := attempt(t, t.Context(), client.New(), target, time.Minute)
	g.Expect(r.Outcome).To(Equal(record.StreamError))
	g.Expect(r.ReceivedBytes).To(BeNumerically("~", 1<<20+8*4<<10, 1<<17), "eight tokens were asked for")
}

func TestEventsAfterTheEndAreNoticed(t *testing.T) {
	g := NewWithT(t)
	target, _ := serve(t, func(c *net.TCPConn) { write(c, head, token("a", 1), finish, done, token("b", 2), done) })
	r := attempt(t, t.Context(), client.New(), target, time.Second)
	g.Expect(r.Outcome).To(Equal(record.OK))
	g.Expect(r.OutputText).To(Equal("a"))
	g.Expect(r.AfterDone).To(Equal(2))
}

func TestTheLastEventEndsAnAttemptThatIsLeftOpen(t *testing.T) {
	g := NewWithT(t)
	target, _ := serve(t, func(c *net.TCPConn) {
		write(c, head, token("a", 1), finish, done)
		hold(c)
	})
	r := attempt(t, t.Context(), client.New(client.WithLinger(20*time.Millisecond)), target, time.Minute)
	g.Expect(r.Outcome).To(Equal(record.OK))
	latency, _ := metric.Latency(r)
	g.Expect(latency).To(BeNumerically("<", time.Second), "the linger is outside the latency")
}

func TestTheLastEventIsNoticedHoweverItIsRead(t *testing.T) {
	for size := 1; size < 20; size++ {
		g := NewWithT(t)
		target, _ := serve(t, func(c *net.TCPConn) {
			write(c, head, token("[DONE] data: [DONE]", 1), finish, done)
			hold(c)
		})
		c := client.New(client.WithLinger(time.Millisecond), client.WithConn(func(conn net.Conn) net.Conn { return &slicing{conn, size} }))
		clk := clock.Start()
		raw := c.Dial(t.Context(), target).Do(t.Context(), clk, clk.Now(), 5*time.Second, request(t))
		g.Expect(raw.Outcome()).To(Equal(record.OK), "%d bytes a read", size)
		var r record.Request
		raw.Decode(&r, nil)
		g.Expect(r.Outcome).To(Equal(record.OK))
		g.Expect(r.OutputText).To(Equal("[DONE] data: [DONE]"))
	}
}

func TestALineThatOnlyLooksLikeTheEndIsNone(t *testing.T) {
	g := NewWithT(t)
	target, _ := serve(t, func(c *net.TCPConn) {
		write(c, head, token("a", 1), "data: [DONE]\ndata: and more\n\n")
		hold(c)
	})
	r := attempt(t, t.Context(), client.New(client.WithLinger(20*time.Millisecond)), target, time.Minute)
	g.Expect(r.Outcome).To(Equal(record.StreamError))
	g.Expect(r.OutputText).To(Equal("a"))
}

func TestReasoningAndToolCallsAreNoText(t *testing.T) {
	delta := func(fields string) string { return "data: {\"choices\":[{\"delta\":{" + fields + "}}]}\n\n" }
	for _, test := range []struct {
		name            string
		events          string
		text, reasoning string
		calls           []record.ToolCall
	}{
		{"text alone", delta(`"content":"a"`), "a", "", nil},
		{"reasoning before text", delta(`"reasoning":"h"`) + delta(`"reasoning_content":"m"`) + delta(`"content":"a"`), "a", "hm", nil},
		{"reasoning under both of its names", delta(`"reasoning":"hm","reasoning_content":"hm"`) + delta(`"reasoning_content":"hm","reasoning":"hm"`), "", "hmhm", nil},
		{"two texts under the two names", delta(`"reasoning":"hm","reasoning_content":"so"`), "", "hmso", nil},
		{"two calls by their index", delta(`"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":""}},{"index":1,"function":{"name":"g","arguments":"["}}]`) +
			delta(`"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]`) + delta(`"tool_calls":[{"index":1,"function":{"arguments":"]"}}]`),
			"", "", []record.ToolCall{{Name: "f", Arguments: "{}"}, {Name: "g", Arguments: "[]"}}},
		{"two calls without an index", delta(`"tool_calls":[{"function":{"name":"f"}}]`) + delta(`"tool_calls":[{"function":{"arguments":"1"}}]`) + delta(`"tool_calls":[{"function":{"name":"f","arguments":"2"}}]`),
			"", "", []record.ToolCall{{Name: "f", Arguments: "1"}, {Name: "f", Arguments: "2"}}},
		{"all three", delta(`"reasoning":"hm","content":"a","tool_calls":[{"function":{"name":"f","arguments":"{\"b\":1}"}}]`), "a", "hm", []record.ToolCall{{Name: "f", Arguments: `{"b":1}`}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			target, _ := serve(t, func(c *net.TCPConn) { write(c, head, test.events, finish, done) })
			r := attempt(t, t.Context(), client.New(), target, 5*time.Second)
			g.Expect(r.Outcome).To(Equal(record.OK), "%v", r.Error)
			g.Expect(r.OutputText).To(Equal(test.text))
			g.Expect(r.ReasoningText).To(Equal(test.reasoning))
			g.Expect(r.ToolCalls).To(Equal(test.calls))
		})
	}
}

func TestAToolsNameIsKeptAndIsNoToken(t *testing.T) {
	g := NewWithT(t)
	call := func(function string) string {
		return "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":" + function + "}]}}]}\n\n"
	}
	target, _ := serve(t, func(c *net.TCPConn) {
		write(c, head, call(`{"name":"look","arguments":""}`), call(`{"arguments":"{}"}`), finish, done)
	})
	r := attempt(t, t.Context(), client.New(), target, 5*time.Second)
	g.Expect(r.Outcome).To(Equal(record.OK), "%v", r.Error)
	g.Expect(r.ToolCalls).To(Equal([]record.ToolCall{{Name: "look", Arguments: "{}"}}))
	g.Expect(r.OutputText).To(BeEmpty())
	g.Expect(r.Events).To(HaveLen(1))
}

// lateConn reads late on purpose: as a client does whose machine is busy.
type lateConn struct {
	net.Conn
	wait func()
}

func (c *lateConn) Read(p []byte) (int, error) { c.wait(); return c.Conn.Read(p) }

func TestALateReaderDoesNotMoveArrivals(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("receive timestamps are Linux's")
	}
	g := NewWithT(t)
	const late = 80 * time.Millisecond
	target, _ := serve(t, func(c *net.TCPConn) {
		write(c, head, token("a", 1))
		hold(c)
	})
	wrap := client.WithConn(func(c net.Conn) net.Conn {
		return &lateConn{c, func() { <-time.After(late) }}
	})
	r := attempt(t, t.Context(), client.New(wrap), target, 500*time.Millisecond)
	g.Expect(r.Clock.Provenance).To(Equal(record.KernelObserved), r.Clock.Reason)
	g.Expect(r.ClientLag).To(HaveLen(1))
	g.Expect(r.ClientLag[0]).To(BeNumerically(">", late/2), "the reader was late, and says so")
	ttft, _ := metric.TTFT(r)
	g.Expect(ttft+r.ClientLag[0]).To(BeNumerically(">=", late), "the arrival is the kernel's, before the late read")

	// The same reader with user-space times calls its own delay the server's.
	user := attempt(t, t.Context(), client.New(wrap, client.WithUserTime()), target, 500*time.Millisecond)
	g.Expect(user.Clock.Provenance).To(Equal(record.ClientObserved))
	slow, _ := metric.TTFT(user)
	g.Expect(slow).To(BeNumerically(">=", late))
	g.Expect(ttft).To(BeNumerically("<", slow))
	g.Expect(user.ClientLag).To(BeEmpty())
	g.Expect(user.Nulls).To(HaveKey("client_lag_ns"))
}

func TestCoalescedEventsAreBrackets(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("receive timestamps are Linux's")
	}
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %t", secure), func(t *testing.T) {
			g := NewWithT(t)
			read, written, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 5 {
					_, _ = io.WriteString(w, token("x", i))
					w.(http.Flusher).Flush() // each its own packet, and its own record
					if i == 0 {
						<-read
					}
				}
				close(written)
				<-over
			}))
			wait := func() {} // not while the connection is opened
			options := []client.Option{client.WithConn(func(c net.Conn) net.Conn { return &lateConn{c, func() { wait() }} })}
			if secure {
				server.StartTLS()
				options = append(options, client.WithTLS(server.Client().Transport.(*http.Transport).TLSClientConfig))
			} else {
				server.Start()
			}
			defer server.Close()
			defer close(over)
			clk := clock.Start()
			before := clk.Read()
			conn := client.New(options...).Dial(t.Context(), client.Target{BaseURL: server.URL})
			reads := 0
			wait = func() {
				if reads++; reads > 1 { // the first brings the header and an event
					if reads == 2 {
						close(read)
					}
					<-written
				}
			}
			r := after(t, t.Context(), conn, clk, before, 300*time.Millisecond)
			g.Expect(r.Clock.Provenance).To(Equal(record.KernelObserved), r.Clock.Reason)
			g.Expect(r.Events).To(HaveLen(5))
			g.Expect(r.Coalesced).To(Equal(3), "the last event of a read has the read's own time")
			first, last := r.Events[0], r.Events[4]
			g.Expect(first.Earliest).To(Equal(first.Arrival))
			g.Expect(last.Earliest).To(Equal(last.Arrival))
			for i, e := range r.Events[1:4] {
				g.Expect(e.Earliest).To(Equal(first.Arrival), "what was read before came before")
				g.Expect(e.Arrival).To(Equal(last.Arrival))
				g.Expect(e.Earliest).To(BeNumerically("<", e.Arrival))
				g.Expect(r.ClientLag[i+1]).To(BeNumerically(">", r.ClientLag[4]), "it may have waited since the read before")
			}
		})
	}
}

func TestAStepOfTheWallClockFallsBackToUserSpace(t *testing.T) {
	g := NewWithT(t)
	target, _ := serve(t, func(c *net.TCPConn) { write(c, head, token("a", 1), finish, done) })
	clk := clock.Start()
	before := clk.Read()
	raw := client.New().Dial(t.Context(), target).Do(t.Context(), clk, clk.Now(), time.Second, request(t))
	after := clk.Read()
	after.Wall += int64(50 * time.Millisecond)
	var r record.Request
	raw.Decode(&r, &clock.Conversion{First: before, Last: after})
	g.Expect(r.Clock.Provenance).To(Equal(record.ClientObserved))
	if runtime.GOOS == "linux" {
		g.Expect(r.Clock.Reason).To(ContainSubstring("stepped"))
	}
	g.Expect(metric.Broken(r)).To(BeEmpty())
}

func TestTLS(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			_, _ = io.WriteString(w, token("t", i))
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, finish+done)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshake that fails below is asked for
	server.EnableHTTP2 = true                           // offered, and not to be taken
	server.StartTLS()
	defer server.Close()
	config := server.Client().Transport.(*http.Transport).TLSClientConfig
	config.NextProtos = []string{"h2"}
	c := client.New(client.WithTLS(config))
	r := attempt(t, t.Context(), c, client.Target{BaseURL: server.URL}, 5*time.Second)
	g.Expect(r.Outcome).To(Equal(record.OK), "%v", r.Error)
	g.Expect(r.TLS).NotTo(BeNil())
	g.Expect(r.OutputTokens).To(HaveValue(Equal(3)))
	r = attempt(t, t.Context(), client.New(), client.Target{BaseURL: server.URL}, 5*time.Second)
	g.Expect(r.Outcome).To(Equal(record.ConnectError))
	g.Expect(r.Error).To(HaveValue(ContainSubstring("certificate")))
}

func TestTheKeyGoesIntoTheHeaderAlone(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("ASSAY_TEST_KEY", "sk-very-secret")
	var got atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, token("t", 1)+finish+done)
	}))
	defer server.Close()
	r := attempt(t, t.Context(), client.New(), client.Target{BaseURL: server.URL, APIKeyEnv: "ASSAY_TEST_KEY"}, time.Second)
	g.Expect(got.Load()).To(Equal("Bearer sk-very-secret"))
	g.Expect(fmt.Sprintf("%+v", r)).NotTo(ContainSubstring("sk-very-secret"))

	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no such key: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	}))
	defer echo.Close()
	r = attempt(t, t.Context(), client.New(), client.Target{BaseURL: echo.URL, APIKeyEnv: "ASSAY_TEST_KEY"}, time.Second)
	g.Expect(r.Outcome).To(Equal(record.HTTPError))
	g.Expect(r.Error).To(HaveValue(And(ContainSubstring("no such key"), Not(ContainSubstring("sk-very-secret")))))

	g.Expect(os.Unsetenv("ASSAY_TEST_KEY")).To(Succeed())
	r = attempt(t, t.Context(), client.New(), client.Target{BaseURL: server.URL, APIKeyEnv: "ASSAY_TEST_KEY"}, time.Second)
	g.Expect(r.Error).To(HaveValue(ContainSubstring("ASSAY_TEST_KEY")))
}

func TestNothingIsLeftBehind(t *testing.T) {
	g := NewWithT(t)
	target, _ := serve(t, func(c *net.TCPConn) {
		write(c, head, token("a", 1))
		hold(c)
	})
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0 // not Linux
		}
		return len(entries)
	}
	goroutines, open := gleak.Goroutines(), files()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		attempt(t, t.Context(), client.New(), target, 20*time.Millisecond)                                    // a timeout
		attempt(t, t.Context(), client.New(), client.Target{BaseURL: secure.URL}, time.Second)                // a handshake that fails
		attempt(t, cancelled, client.New(), target, time.Second)                                              // never dialled
		g.Expect(client.New().Dial(t.Context(), target).Close()).To(Succeed())                                // never used
		client.New().Dial(t.Context(), target).Do(cancelled, clock.Start(), 0, time.Second, client.Request{}) // never sent
	}
	g.Eventually(gleak.Goroutines).WithTimeout(5 * time.Second).ShouldNot(gleak.HaveLeaked(goroutines))
	g.Eventually(files).WithTimeout(5 * time.Second).Should(BeNumerically("<=", open))
}

func TestARequestSaysAllItsMistakes(t *testing.T) {
	_, err := client.NewChatRequest(client.Params{})
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("model"), ContainSubstring("message"), ContainSubstring("max_tokens"))))
	_, err = client.NewCompletionRequest(client.Params{})
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("model"), ContainSubstring("prompt"), ContainSubstring("max_tokens"))))
	both := client.Params{Model: "m", Messages: []client.Message{{Role: "user", Content: "Hi"}}, Prompt: "Hi", MaxTokens: 1, TopP: 1}
	_, err = client.NewChatRequest(both)
	NewWithT(t).Expect(err).To(MatchError("a chat has messages and no prompt: leave it out"))
	_, err = client.NewCompletionRequest(both)
	NewWithT(t).Expect(err).To(MatchError("a plain completion has a prompt and no messages: leave them out"))
}

func TestACompletionIsAskedWithItsPromptAndOtherwiseAsAChat(t *testing.T) {
	g := NewWithT(t)
	r, err := client.NewCompletionRequest(client.Params{Model: "m", Prompt: "Hi", MaxTokens: 8, Temperature: 0.5, TopP: 0.9, RepetitionPenalty: 1.1, Seed: 3, Exact: true, TokenIDs: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(r.Body)).To(Equal(`{"model":"m","prompt":"Hi","max_tokens":8,"temperature":0.5,"top_p":0.9,"repetition_penalty":1.1,"seed":3,` +
		`"ignore_eos":true,"min_tokens":8,"stream":true,"stream_options":{"include_usage":true},"return_token_ids":true}`))
	g.Expect(r.TokenIDs).To(BeTrue())
}

func TestAPinnedPenaltyIsSentThoughItIsTheUsualOne(t *testing.T) {
	r, err := client.NewChatRequest(client.Params{Model: "m", Messages: []client.Message{{Role: "user", Content: "Hi"}}, MaxTokens: 8, TopP: 1, RepetitionPenalty: 1})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(string(r.Body)).To(And(ContainSubstring(`"repetition_penalty":1`), ContainSubstring(`"top_p":1`)))
}

func TestTheFixedLaneForcesTheLength(t *testing.T) {
	g := NewWithT(t)
	p := client.Params{Model: "m", Messages: []client.Message{{Role: "user", Content: "Hi"}}, MaxTokens: 8, TopP: 1}
	natural, err := client.NewChatRequest(p)
	g.Expect(err).NotTo(HaveOccurred())
	p.Exact = true
	exact, err := client.NewChatRequest(p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(exact.Body)).To(And(ContainSubstring(`"ignore_eos":true`), ContainSubstring(`"min_tokens":8`)))
	g.Expect(string(natural.Body)).NotTo(ContainSubstring("ignore_eos"))
	g.Expect(natural.SHA256()).NotTo(Equal(exact.SHA256()))
	again, _ := client.NewChatRequest(p)
	g.Expect(bytes.Equal(exact.Body, again.Body)).To(BeTrue())
}

func ExampleClient() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, token("Hello", 1)+token(" there", 2)+finish+done)
	}))
	defer server.Close()
	request, err := client.NewChatRequest(client.Params{
		Model: "m", Messages: []client.Message{{Role: "user", Content: "Hi"}}, MaxTokens: 8, TopP: 1, TokenIDs: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	clk := clock.Start()
	before := clk.Read()
	conn := client.New().Dial(context.Background(), client.Target{BaseURL: server.URL})
	raw := conn.Do(context.Background(), clk, clk.Now(), time.Minute, request)
	var r record.Request
	raw.Decode(&r, &clock.Conversion{First: before, Last: clk.Read()})
	fmt.Println(r.Outcome, strings.ToUpper(r.OutputText), *r.OutputTokens, *r.OutputTokensSource)
	// Output: ok HELLO THERE 2 token_ids
}

// BenchmarkDecode is what it costs to take apart the response of 128 tokens,
// after its wave.
func BenchmarkDecode(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 128 {
			_, _ = io.WriteString(w, token(" word", i))
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, finish+usage(128)+done)
	}))
	defer server.Close()
	request, err := client.NewChatRequest(client.Params{Model: "m", Messages: []client.Message{{Role: "user", Content: "Hi"}}, MaxTokens: 128, TopP: 1, TokenIDs: true})
	if err != nil {
		b.Fatal(err)
	}
	clk := clock.Start()
	before := clk.Read()
	raw := client.New().Dial(b.Context(), client.Target{BaseURL: server.URL}).Do(b.Context(), clk, clk.Now(), time.Minute, request)
	conversion := clock.Conversion{First: before, Last: clk.Read()}
	b.ReportAllocs()
	for b.Loop() {
		var r record.Request
		raw.Decode(&r, &conversion)
	}
}

// What is sent is decided once, before the wave, and the same every time.
func ExampleNewChatRequest() {
	request, err := client.NewChatRequest(client.Params{
		Model: "smollm2", Messages: []client.Message{{Role: "user", Content: "Name a colour."}}, MaxTokens: 16, TopP: 1, Exact: true, TokenIDs: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.ReplaceAll(string(request.Body), ",\"", ",\n \""))
	// Output:
	// {"model":"smollm2",
	//  "messages":[{"role":"user",
	//  "content":"Name a colour."}],
	//  "max_tokens":16,
	//  "temperature":0,
	//  "top_p":1,
	//  "ignore_eos":true,
	//  "min_tokens":16,
	//  "stream":true,
	//  "stream_options":{"include_usage":true},
	//  "return_token_ids":true}
}

func TestToolsAreSentAsTheyAre(t *testing.T) {
	g := NewWithT(t)
	p := client.Params{Model: "m", Messages: []client.Message{{Role: "user", Content: "Hi"}}, MaxTokens: 8, TopP: 1}
	without, err := client.NewChatRequest(p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(without.Body)).NotTo(ContainSubstring("tool"))
	p.Tools, p.ToolChoice = json.RawMessage(`[{"type": "function", "function": {"name": "f", "b": 1, "a": 1.0}}]`), json.RawMessage(`"auto"`)
	with, err := client.NewChatRequest(p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(with.Body)).To(ContainSubstring(`"tools":[{"type":"function","function":{"name":"f","b":1,"a":1.0}}],"tool_choice":"auto"`), "in their own order and spelling")
	p.Messages, p.Prompt = nil, "Hi"
	_, err = client.NewCompletionRequest(p)
	g.Expect(err).To(MatchError(ContainSubstring("a plain completion has no tools")))
}
