// Package junit writes JUnit XML that GitHub's, GitLab's and Jenkins' readers
// show well, and holds a report against the schema that Jenkins publishes for it.
package junit
