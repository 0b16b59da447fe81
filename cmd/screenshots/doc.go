// Command screenshots makes the pictures in docs/ of published bundles' pages:
// make docs. It unpacks each bundle, renders its page and looks at that in
// headless Chromium.
package main
