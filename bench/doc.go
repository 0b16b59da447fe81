// Command bench measures what the load client costs by itself: its arrival
// error, its memory and its speed, against a null server in a process of its
// own and beside a plain net/http client in the same run. It prints each
// figure with its target; it asserts nothing, since timing is not a test.
package main
