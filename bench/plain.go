//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
)

// plain is what most would write: net/http, bufio, encoding/json, connections
// kept open. It makes requests, n at a time, and counts the tokens.
func (b *suite) plain(n, requests int, p pace) int {
	transport := &http.Transport{MaxIdleConnsPerHost: n}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	events := make([]int, n)
	var all sync.WaitGroup
	for slot := range n {
		all.Go(func() {
			for i := slot; i < requests; i += n {
				events[slot] += plainRequest(c, b.url+p.path())
			}
		})
	}
	all.Wait()
	total := 0
	for _, e := range events {
		total += e
	}
	return total
}

func plainRequest(c *http.Client, url string) int {
	const body = `{"model":"null","messages":[{"role":"user","content":"Hi"}],"max_tokens":128,"stream":true}`
	response, err := c.Post(url, "application/json", strings.NewReader(body))
	check(err)
	defer response.Body.Close()
	lines, events := bufio.NewReader(response.Body), 0
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return events
		}
		check(err)
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok || bytes.HasPrefix(data, []byte("[DONE]")) {
			continue
		}
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
		if len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
			events++
		}
	}
}
