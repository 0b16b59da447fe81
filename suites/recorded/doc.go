// Package recorded is published evidence: the records of a run that somebody
// else made and published, read strictly, so that its figures can be derived
// again and its statements held against what the records support. There are no
// servers in it.
package recorded
