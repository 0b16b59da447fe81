// Package environment is where a run ran: the machine, its clock and limits,
// the toolchain and the project's own revision, each a fact with its
// provenance or a null with the reason. Nothing in it names a person or a
// machine.
package environment
