// Package reports writes what a run leaves behind and reads it again: the
// bundle, its verification, and the tables that people read. Everything it
// writes beside the records can be derived from them.
package reports
