// Package process is a server started as a child of this process, in a process
// group of its own that is ended as a whole.
package process
