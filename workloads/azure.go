package workloads

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// azureHeader is the first line of the Azure LLM inference traces of 2023 and
// 2024 (github.com/Azure/AzurePublicDataset).
var azureHeader = []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}

// azureTimes are how the traces of 2023 and 2024 write a time; a fraction of a
// second follows both.
var azureTimes = []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00"}

// readAzure reads an Azure trace. Where a request has no input or no output
// tokens it can't be asked again, and is left out.
func readAzure(r io.Reader, in *intake) error {
	header := true
	return eachRecord(r, &in.faults, func(n int, record []string) bool {
		if header {
			header = false
			if !slices.Equal(record, azureHeader) {
				in.faults.add(n, fmt.Sprintf("the header is %q: an Azure trace's is %q", strings.Join(record, ","), strings.Join(azureHeader, ",")))
				return false
			}
			return true
		}
		if len(record) != len(azureHeader) {
			in.faults.add(n, fmt.Sprintf("it has %d fields, and not %d", len(record), len(azureHeader)))
			return true
		}
		at, why := azureTime(record[0])
		input, inputWhy := tokenCount("ContextTokens", record[1])
		output, outputWhy := tokenCount("GeneratedTokens", record[2])
		if why = slices.Concat(why, inputWhy, outputWhy); len(why) > 0 {
			in.faults.add(n, why...)
			return true
		}
		in.timedEntry(n, at, input, output, nil)
		return true
	})
}

// azureEpoch is where times are counted from on the way to the first entry's.
var azureEpoch = time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)

func azureTime(text string) (at time.Duration, why []string) {
	for _, layout := range azureTimes {
		t, err := time.Parse(layout, strings.TrimSpace(text))
		if err != nil {
			continue
		}
		if year := t.Year(); year < 2000 || year > 2200 {
			return 0, []string{fmt.Sprintf("TIMESTAMP is in the year %d: write 2000 to 2200", year)}
		}
		return t.Sub(azureEpoch), nil
	}
	return 0, []string{fmt.Sprintf("TIMESTAMP is %q: write it as 2023-11-16 18:15:46.6805900 or 2024-05-12 00:00:00.003167+00:00", text)}
}

// tokenCount reads a number of tokens; 0 is one.
func tokenCount(name, text string) (n int, why []string) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0, []string{fmt.Sprintf("%s is %q: write a whole number", name, text)}
	}
	return n, checkCount(name, n)
}

func checkCount(name string, n int) (why []string) {
	if n < 0 || n > mostTokens {
		return []string{fmt.Sprintf("%s is %d: write 0 to %d", name, n, mostTokens)}
	}
	return nil
}

// timedEntry takes a trace's entry. Segments are those of its input; nil: it
// shares nothing with any other.
func (in *intake) timedEntry(n int, at time.Duration, input, output int, segments []Segment) {
	offset, ok := in.at(n, at)
	switch {
	case !ok:
	case input == 0:
		in.skip(1, "no input tokens")
	case output == 0:
		in.skip(1, "no output tokens")
	default:
		e := Entry{ID: fmt.Sprintf("%s/%d", in.Kind, n), Place: n, Offset: offset, Segments: segments, Output: output}
		if segments == nil {
			e.Segments = []Segment{{Key: e.ID, Tokens: input}}
		}
		in.take(e)
	}
}

// eachRecord hands on every record of a CSV file with its line's number, until
// it is told to stop.
func eachRecord(r io.Reader, f *faults, each func(line int, record []string) bool) error {
	c := csv.NewReader(withoutMark(r))
	c.FieldsPerRecord, c.ReuseRecord = -1, true
	for {
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
			// Where a quote is open nobody knows what the rest would be.
			f.add(wrong.StartLine, fmt.Sprintf("it is no CSV: %s; nothing after it was read", wrong.Err))
			return nil
		}
		if err != nil {
			return err
		}
		if line, _ := c.FieldPos(0); !each(line, record) {
			return nil
		}
	}
}
