// Package suite is what every experiment's Ginkgo suite has in common: plans
// become containers, schedules become specs, label filters decide what is
// asked for, and each plan's run leaves a bundle. A suite's own file then
// reads like its protocol.
package suite
