package workloads_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/workloads"
)

func load(t *testing.T, name string, s workloads.Source) ([]workloads.Entry, workloads.Dataset) {
	t.Helper()
	s.License = "invented"
	entries, d, err := workloads.Load("testdata/"+name, s)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	accounted(t, entries, d)
	return entries, d
}

// accounted holds that each entry of a file was taken or left out.
func accounted(t *testing.T, entries []workloads.Entry, d workloads.Dataset) {
	t.Helper()
	left := 0
	for _, n := range d.LeftOut {
		left += n
	}
	if d.Taken != len(entries) || d.Entries != d.Taken+left {
		t.Errorf("%d entries: %+v", len(entries), d)
	}
}

func TestAnAzureTraceIsReadAtItsTimes(t *testing.T) {
	g := NewWithT(t)
	entries, d := load(t, "azure.csv", workloads.Source{Kind: "azure", Speed: 2})
	g.Expect(entries).To(HaveLen(3))
	g.Expect(entries[0].Offset).To(BeZero(), "from the first entry")
	g.Expect(entries[1]).To(Equal(workloads.Entry{
		ID: "azure/4", Place: 4, Offset: 875 * time.Millisecond, Segments: []workloads.Segment{{Key: "azure/4", Tokens: 80}}, Output: 12,
	}))
	g.Expect(d.LeftOut).To(Equal(map[string]int{"no output tokens": 1}))
	g.Expect([]any{d.Kind, d.File, d.License, *d.Speed}).To(Equal([]any{"azure", "azure.csv", "invented", 2.0}))

	entries, d = load(t, "azure.csv", workloads.Source{Kind: "azure", Window: workloads.Window{From: time.Second, To: 10 * time.Second}})
	g.Expect(entries).To(HaveLen(1))
	g.Expect(entries[0].Offset).To(Equal(750 * time.Millisecond))
	g.Expect(d.LeftOut).To(Equal(map[string]int{"no output tokens": 1, "before the window": 1, "after the window": 1}))
}

func TestToolsAreTakenAsTheyAre(t *testing.T) {
	g := NewWithT(t)
	entries, _, err := workloads.Read(strings.NewReader(`{"prompt": "a", "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": {"type":"function"}}`+"\n"+
		`{"prompt": "b", "tools": [{}], "tool_choice": "auto"}`+"\n"+`{"prompt": "c"}`), workloads.Source{Kind: "jsonl", License: "none"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]string{string(entries[0].Tools), string(entries[0].ToolChoice)}).To(Equal([]string{`[{"type": "function", "function": {"name": "f"}}]`, `{"type":"function"}`}))
	g.Expect(string(entries[1].ToolChoice)).To(Equal(`"auto"`))
	g.Expect(entries[2].Tools).To(BeNil())
}

func TestBlocksOfAMooncakeTraceAreItsSharedPrefixes(t *testing.T) {
	g := NewWithT(t)
	entries, _ := load(t, "mooncake.jsonl", workloads.Source{Kind: "mooncake"})
	g.Expect(entries[1].Segments).To(Equal([]workloads.Segment{{Key: "mooncake/7", Tokens: 512}, {Key: "mooncake/8", Tokens: 512}, {Key: "mooncake/10", Tokens: 276}}))
	g.Expect(entries[2].Segments).To(Equal([]workloads.Segment{{Key: "mooncake/line/3", Tokens: 100}}))
	g.Expect(entries[1].Offset).To(Equal(500 * time.Millisecond))
	shared, total := workloads.Shared(entries)
	g.Expect([]int{shared, total}).To(Equal([]int{1024, 2500}))
}

func TestEachAnswerOfAShareGPTConversationIsAnEntry(t *testing.T) {
	g := NewWithT(t)
	entries, d := load(t, "sharegpt.json", workloads.Source{Kind: "sharegpt"})
	g.Expect(entries).To(HaveLen(2))
	g.Expect(entries[0].ID).To(Equal("sharegpt/1/1"))
	g.Expect(entries[0].Messages).To(HaveLen(2))
	g.Expect(entries[1].ID).To(Equal("sharegpt/1/2"))
	g.Expect(entries[1].Messages).To(HaveLen(4))
	g.Expect(entries[1].Reference).To(Equal("Bye."))
	g.Expect(d.LeftOut).To(Equal(map[string]int{"an answer that nobody asked for, and after it": 2, "a conversation without an answer": 1}))
}

func TestOnesOwnRequestsAreReadAsTheyAre(t *testing.T) {
	g := NewWithT(t)
	entries, d := load(t, "own.jsonl", workloads.Source{Kind: "jsonl"})
	g.Expect(entries[0]).To(Equal(workloads.Entry{ID: "greeting", Place: 1, Messages: []workloads.Message{{Role: "user", Content: "Say hello."}}, MaxTokens: 16}))
	g.Expect([]any{entries[1].ID, entries[1].Output, len(entries[1].Messages)}).To(Equal([]any{"jsonl/3", 8, 2}))
	g.Expect(d.Speed).To(BeNil())
}

func TestEveryFaultyPlaceIsNamed(t *testing.T) {
	azure := "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	for name, c := range map[string]struct {
		kind, text string
		want       []string
	}{
		"jsonl":             {"jsonl", "{\"prompt\":\"\",\"max_tokens\":0}\n{\"prompt\":\"a\",\"max_token\":3}\n{}\n", []string{"line 1: its prompt is empty; max_tokens is 0", "line 2: ", "line 3: it has neither"}},
		"jsonl, same id":    {"jsonl", "{\"prompt\":\"a\",\"id\":\"x\"}\n{\"prompt\":\"b\",\"id\":\"x\"}\n", []string{"line 2: the id \"x\" is line 1's"}},
		"jsonl, tools":      {"jsonl", `{"prompt":"a","tools":[]}` + "\n" + `{"prompt":"a","tools":["x"],"tool_choice":3}` + "\n" + `{"prompt":"a","tool_choice":"auto"}`, []string{"line 1: tools is no list of objects", "line 2: tools is no list of objects", "tool_choice is neither a word nor an object", "line 3: it has a tool_choice and no tools"}},
		"jsonl, last":       {"jsonl", `{"messages":[{"role":"assistant","content":"a"}]}`, []string{"its last message is the assistant's"}},
		"azure, order":      {"azure", azure + "2023-11-16 18:00:01.0,1,1\n2023-11-16 18:00:00.0,1,1\n2023-11-16 18:00:02.0,-1,x\n", []string{"line 3: it is 1s earlier", "line 4: ContextTokens is -1", "GeneratedTokens is \"x\""}},
		"azure, header":     {"azure", "a,b,c\n", []string{"line 1: the header is"}},
		"mooncake":          {"mooncake", "{\"timestamp\":-1,\"input_length\":10,\"hash_ids\":[1,2]}\n{\"timestamp\":0,\"input_length\":-5,\"output_length\":1}\n", []string{"line 1: timestamp is -1 ms", "output_length is missing", "2 hash_ids for 10 tokens", "line 2: input_length is -5"}},
		"sharegpt":          {"sharegpt", `[{"id":"a"},{"conversations":[{"from":"human"}]},{]`, []string{"element 1: it has no conversations", "element 2: turn 1 has no from", "element 3: it is no JSON"}},
		"sharegpt, no list": {"sharegpt", `{}`, []string{"no JSON array"}},
	} {
		t.Run(name, func(t *testing.T) {
			entries, _, err := workloads.Read(strings.NewReader(c.text), workloads.Source{Kind: c.kind, License: "none"})
			NewWithT(t).Expect(entries).To(BeNil())
			for _, want := range c.want {
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
			}
		})
	}
	_, _, err := workloads.Read(strings.NewReader(strings.Repeat("{}\n", 25)), workloads.Source{Kind: "jsonl", License: "none"})
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("line 20:"), Not(ContainSubstring("line 21:")), ContainSubstring("and 5 more faulty lines: the first 20 are named"))))
}

func TestADeclarationIsRefusedWithAllItsFaults(t *testing.T) {
	_, _, err := workloads.Read(strings.NewReader(""), workloads.Source{Kind: "jsonl", Speed: -1, Window: workloads.Window{From: 2, To: 1}, Sample: -1})
	for _, want := range []string{"licence", "the window is", "speed is -1", "no times", "sample is -1"} {
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
	}
}

func TestALargerSampleHoldsASmallerOne(t *testing.T) {
	g := NewWithT(t)
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "{\"prompt\":\"%d\"}\n", i)
	}
	draw := func(n int, seed uint64) []workloads.Entry {
		entries, d, err := workloads.Read(strings.NewReader(text.String()), workloads.Source{Kind: "jsonl", License: "none", Sample: n, Seed: seed})
		g.Expect(err).NotTo(HaveOccurred())
		accounted(t, entries, d)
		g.Expect(*d.Seed).To(Equal(seed))
		return entries
	}
	small, large := draw(5, 3), draw(20, 3)
	for _, e := range small {
		g.Expect(large).To(ContainElement(e))
	}
	g.Expect(draw(5, 4)).NotTo(Equal(small))
}

func fuzz(f *testing.F, kind, sample string) {
	data, err := os.ReadFile("testdata/" + sample)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, d, err := workloads.Read(strings.NewReader(string(data)), workloads.Source{Kind: kind, License: "none"})
		if err != nil {
			return
		}
		accounted(t, entries, d)
		last := time.Duration(0)
		for _, e := range entries {
			if e.Offset < last || e.ID == "" || (e.Input() < 1) == (len(e.Messages) == 0) {
				t.Errorf("%+v", e)
			}
			last = e.Offset
		}
	})
}

func FuzzJSONL(f *testing.F)    { fuzz(f, "jsonl", "own.jsonl") }
func FuzzAzure(f *testing.F)    { fuzz(f, "azure", "azure.csv") }
func FuzzMooncake(f *testing.F) { fuzz(f, "mooncake", "mooncake.jsonl") }
func FuzzShareGPT(f *testing.F) { fuzz(f, "sharegpt", "sharegpt.json") }

func FuzzLengths(f *testing.F) {
	f.Add([]byte("input,output\n12,3\n"), "input")
	f.Add([]byte("12\n7\n"), "")
	f.Fuzz(func(t *testing.T, data []byte, column string) {
		values, d, err := workloads.ReadLengths(strings.NewReader(string(data)), column, "none")
		if err == nil && (len(values) == 0 || d.Taken != len(values)) {
			t.Errorf("%v %+v", values, d)
		}
	})
}

func TestWhatIsLeftOutLaterIsCountedToo(t *testing.T) {
	g := NewWithT(t)
	entries, d := load(t, "mooncake.jsonl", workloads.Source{Kind: "mooncake"})
	kept := d.Keep(entries, "longer than the context", func(e workloads.Entry) bool { return e.Input() <= 1200 })
	accounted(t, kept, d)
	g.Expect(d.String()).To(Equal("2 of 3 entries taken, 1 left out: longer than the context"))
}
