// Package lifecycle is one fresh server, from host invocation to removal: its
// phases and their moments, its log, its identity and its end. It is the same
// for every engine, and leaves one record.
package lifecycle
