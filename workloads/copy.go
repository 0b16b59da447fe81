package workloads

import (
	"fmt"
	"strings"
)

// drawCopy asks for a line of sentences. None of them has the form of the
// filler's, so that no filler holds the answer.
func drawCopy(seed uint64, difficulty, number int) (text, answer string) {
	r := stream(seed, fmt.Sprintf("copy/%d/%d", difficulty, number))
	sentences := make([]string, difficulty)
	for i := range sentences {
		two := draw(r, 2, things)
		sentences[i] = fmt.Sprintf("The %s %s the %s and the %s %s.", pick(r, folk), pick(r, deeds), two[0], pick(r, looks), two[1])
	}
	line := strings.Join(sentences, " ")
	return "Copy this line exactly.\n\n" + line, line
}
