// Package shape holds JSON against a JSON schema as the bytes stand, without
// making values of them: that is quick enough for every line of a large bundle.
// It says yes or nothing: what it does not take is for a whole validator, which
// knows all of JSON Schema and has the words for what is wrong.
package shape
