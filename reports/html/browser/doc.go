// Package browser opens a page of this machine's disk in headless Chromium, says
// what it printed, threw and asked for, and takes pictures of it: for tests of
// the page and for the documentation's screenshots.
package browser
