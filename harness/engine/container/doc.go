// Package container is a server in a container of this machine's Docker, by
// testcontainers: its image is found, built or pulled, it is run with labels
// of our own, watched, logged, stopped and removed; and what a killed run left
// behind is removed at the next start.
package container
