// Package golden holds what people read, in tests, against the files that it is
// kept in.
package golden
