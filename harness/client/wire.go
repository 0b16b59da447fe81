package client

import (
	"net"

	"assay/harness/clock"
)

// stamper is a connection that knows when the kernel received the last of the
// bytes of its last read, in ns since the Unix epoch; 0 if it does not.
type stamper interface {
	net.Conn
	received() int64
}

// reading is one read from the network: not what it brought, but when.
type reading struct {
	number int32 // from 1
	at     int64 // ns on the lifecycle's clock: when it returned
	kernel int64 // ns since the Unix epoch: when the kernel got the last of its bytes; 0: not known
	full   bool  // it filled its buffer, so that more may have been waiting behind it
}

// wire notes the reads of a connection. Under TLS it stands below the
// decryption and hands out one record at a time, so that a record is never
// dated by the read of the record after it, and what one read brought of
// several is known to have come together.
type wire struct {
	net.Conn
	stamps  stamper // nil: no kernel times
	clock   *clock.Clock
	last    reading
	records bool   // TLS: hand out by records
	buffer  []byte // TLS: what reads go into
	held    []byte // TLS: read and not handed out yet
	head    int    // TLS: bytes seen of the header of the record under way
	rest    int    // TLS: bytes of it that are still to come
}

// tlsBuffer is the size of a read under TLS: many small records, or half of the
// largest.
const tlsBuffer = 8 << 10

// recordHeader is a TLS record's type, version and length (RFC 8446, 5.1).
const recordHeader = 5

func (w *wire) Read(p []byte) (int, error) {
	if !w.records {
		return w.pull(p)
	}
	if len(w.held) == 0 {
		if w.buffer == nil {
			w.buffer = make([]byte, tlsBuffer)
		}
		n, err := w.pull(w.buffer)
		if n == 0 {
			return 0, err
		}
		w.held = w.buffer[:n]
	}
	n := w.advance(w.held[:min(len(w.held), len(p))])
	copy(p, w.held[:n])
	w.held = w.held[n:]
	return n, nil
}

// pull reads once and notes when.
func (w *wire) pull(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 && w.clock != nil {
		w.last = reading{number: w.last.number + 1, at: w.clock.Now(), full: n == len(p)}
		if w.stamps != nil {
			w.last.kernel = w.stamps.received()
		}
	}
	return n, err
}

// advance follows the records through the bytes and stops at a record's end;
// it returns how many bytes it went over.
func (w *wire) advance(p []byte) int {
	for n, b := range p {
		if w.head < recordHeader {
			if w.head >= 3 {
				w.rest = w.rest<<8 | int(b)
			}
			w.head++
			if w.head < recordHeader || w.rest > 0 {
				continue
			}
			w.head = 0
			return n + 1
		}
		step := min(w.rest, len(p)-n)
		if w.rest -= step; w.rest == 0 {
			w.head = 0
		}
		return n + step
	}
	return len(p)
}

// more says whether the last read brought, or may have left, bytes behind
// those that were handed out.
func (w *wire) more() bool { return len(w.held) > 0 || w.last.full }
