// Package recorded is published evidence: the records of a run that somebody
// else made and published, and the table of another, read strictly, so that
// their figures can be derived again and their statements held against what the
// records support. There are no servers in it.
package recorded
