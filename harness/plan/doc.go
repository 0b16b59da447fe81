// Package plan is the frozen declaration of an experiment: loading it,
// validating all of it at once with line and column, freezing it to canonical
// bytes with a SHA-256, and drawing its schedule of lifecycles and waves. It
// holds no defaults elsewhere: what a frozen plan does not say, nobody decides.
package plan
