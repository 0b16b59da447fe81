package container

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"assay/harness/engine"
	"assay/harness/engine/owner"
)

// The labels that every container of a run carries.
const (
	RunLabel       = "assay.run"
	LifecycleLabel = "assay.lifecycle"
	OwnerLabel     = "assay.owner" // the process that must remove it, as [owner.Owner] writes it
)

// LabelsOf are the labels of a lifecycle's container that the process pid on
// this machine must remove.
func LabelsOf(l engine.Launch, pid int) map[string]string {
	return map[string]string{RunLabel: l.Run, LifecycleLabel: l.Name, OwnerLabel: owner.Of(pid).String()}
}

// RemoveLeftovers removes the containers, with their anonymous volumes, of runs
// whose process is surely gone (see [owner.Owner.Gone]). A living run's are
// never touched, nor another machine's, which may share the daemon.
func RemoveLeftovers(ctx context.Context, docker client.APIClient) error {
	left, err := docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", OwnerLabel)})
	if err != nil {
		return fmt.Errorf("what a killed run may have left can't be listed: %w", err)
	}
	var errs []error
	for _, c := range left.Items {
		o, err := owner.Parse(c.Labels[OwnerLabel])
		if err != nil || !o.Gone() {
			continue
		}
		_, err = docker.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		// A conflict: another run is removing it at this moment.
		if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
			errs = append(errs, fmt.Errorf("the container %.12s of the killed run %s can't be removed: %w; docker rm -f it", c.ID, c.Labels[RunLabel], err))
		}
	}
	return errors.Join(errs...)
}
