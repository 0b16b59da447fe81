package workloads

import (
	"fmt"
	"strings"
)

// drawCopy asks for a line of words that no language model could guess.
func drawCopy(seed uint64, difficulty, number int) (text, answer string) {
	r := stream(seed, fmt.Sprintf("copy/%d/%d", difficulty, number))
	line := strings.Join(draw(r, difficulty, things), " ")
	return "Copy the next line exactly, and write nothing else.\n\n" + line, line
}
