// Package arrival says when requests arrive, whatever the server does: arrival
// processes drawn from a seed, and the windows that say which of them count.
package arrival
