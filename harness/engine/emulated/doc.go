// Package emulated is a server in this process: real HTTP and the same
// streaming protocol, with tokens that a scheduler model gives out in scaled
// time. Everything that comes from it is emulated, and says so. It can be told
// to misbehave in every way that a client must survive.
package emulated
