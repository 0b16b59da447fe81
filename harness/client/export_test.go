package client

// Framed is the data of each event of a body, for tests of the framing alone.
func Framed(body []byte) [][]byte {
	var out [][]byte
	for e := range events(body) {
		out = append(out, e.data)
	}
	return out
}
