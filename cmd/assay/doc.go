// Command assay is what a person runs on plans and bundles: check, run,
// verify, report, doctor. Exit codes: 0 it holds, 1 it does not, 2 it could
// not be read or called so.
package main
