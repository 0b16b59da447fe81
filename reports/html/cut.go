package html

import (
	"fmt"
	"unicode/utf8"
)

// cut shortens a text to so many characters, and says how many are left out.
func cut(text string, most int) string {
	n := utf8.RuneCountInString(text)
	if n <= most {
		return text
	}
	return string([]rune(text)[:most]) + fmt.Sprintf("… (and %d more characters)", n-most)
}
