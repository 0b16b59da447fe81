//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"assay/harness/client"
)

// runPlain makes a job with what most would write: net/http, bufio,
// encoding/json, connections kept open, times taken as it reads, and no more
// kept of a request than its TTFT and TPOT.
func runPlain(j job) error {
	transport := &http.Transport{MaxIdleConnsPerHost: j.Clients}
	defer transport.CloseIdleConnections()
	c, body := &http.Client{Transport: transport}, chat(j.Tokens).Body
	ttft, tpot := make([]float64, j.Requests), make([]float64, j.Requests)
	j.slots(func(i int, url string) {
		began := time.Now()
		first, last, tokens := plainRequest(c, url+client.ChatPath, body)
		if tokens != j.Tokens {
			check(fmt.Errorf("request %d brought %d events of %d", i+1, tokens, j.Tokens))
		}
		ttft[i] = float64(first.Sub(began)) / 1e6
		tpot[i] = float64(last.Sub(first)) / 1e6 / float64(tokens-1)
	})
	a, b := timesOf(ttft), timesOf(tpot)
	return report(reported{Completed: j.Requests, TTFT: &a, TPOT: &b})
}

// plainRequest says when the first and the last token had been read, and how
// many there were.
func plainRequest(c *http.Client, url string, body []byte) (first, last time.Time, tokens int) {
	response, err := c.Post(url, "application/json", bytes.NewReader(body))
	check(err)
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return first, last, tokens
		}
		check(err)
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok || bytes.HasPrefix(data, []byte("[DONE]")) {
			continue
		}
		now := time.Now()
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
				FinishReason *string `json:"finish_reason"`
			} `json:"choices"`
			Usage *struct {
				CompletionTokens int `json:"completion_tokens"`
			} `json:"usage"`
		}
		check(json.Unmarshal(data, &chunk))
		if len(chunk.Choices) == 0 || chunk.Choices[0].Delta.Content == "" {
			continue
		}
		if last = now; tokens == 0 {
			first = now
		}
		tokens++
	}
}
