// Flux: helm-controller's drift detection and kustomize-controller's way to apply, by the libraries they are made of.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/jsondiff"
	"github.com/fluxcd/pkg/ssa/normalize"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// helmDiff compares a release's manifest (`helm get manifest`) with the cluster.
func helmDiff(ctx context.Context, j job) ([]finding, error) {
	cluster, err := client.New(j.config, client.Options{DryRun: ptr.To(true)})
	if err != nil {
		return nil, err
	}
	if err := normalize.UnstructuredListWithScheme(j.manifests, cluster.Scheme()); err != nil {
		return nil, err
	}
	for _, object := range j.manifests {
		// Helm adds these when it creates an object; they aren't in the manifest.
		labels, annotations := object.GetLabels(), object.GetAnnotations()
		if labels == nil {
			labels = map[string]string{}
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		labels["app.kubernetes.io/managed-by"] = "Helm"
		annotations["meta.helm.sh/release-name"] = j.name
		annotations["meta.helm.sh/release-namespace"] = j.namespace
		object.SetLabels(labels)
		object.SetAnnotations(annotations)
		if object.GetNamespace() != "" {
			continue
		}
		namespaced, err := apiutil.IsObjectNamespaced(object, cluster.Scheme(), cluster.RESTMapper())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", j.target(object), err)
		}
		if namespaced {
			object.SetNamespace(j.namespace)
		}
	}
	differences, err := jsondiff.UnstructuredList(
		ctx, cluster, j.manifests,
		jsondiff.FieldOwner("helm-controller"), jsondiff.Rationalize(true), jsondiff.Graceful(true),
	)
	if err != nil {
		return nil, err
	}
	var found []finding
	for _, difference := range differences {
		if difference.Type == jsondiff.DiffTypeNone {
			continue
		}
		patch, err := json.Marshal(difference.Patch)
		if err != nil {
			return nil, err
		}
		object := difference.DesiredObject.GetObjectKind().GroupVersionKind().Kind + "/" + difference.GetName()
		found = append(found, finding{object, string(difference.Type), string(patch)})
	}
	return found, nil
}

func newKustomization(j job) (*ssa.ResourceManager, error) {
	cluster, err := client.New(j.config, client.Options{})
	if err != nil {
		return nil, err
	}
	owner := ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"}
	// It waits for the priority classes before it applies what may name them.
	poller := polling.NewStatusPoller(cluster, cluster.RESTMapper(), polling.Options{})
	manager := ssa.NewResourceManager(cluster, poller, owner)
	manager.SetOwnerLabels(j.manifests, j.name, j.namespace)
	return manager, normalize.UnstructuredList(j.manifests)
}

func kustomizeApply(ctx context.Context, j job) ([]finding, error) {
	manager, err := newKustomization(j)
	if err != nil {
		return nil, err
	}
	changes, err := manager.ApplyAllStaged(ctx, j.manifests, ssa.DefaultApplyOptions())
	if err != nil {
		return nil, err
	}
	return said(changes), nil
}

// kustomizeDiff leaves out what stays as it is.
func kustomizeDiff(ctx context.Context, j job) ([]finding, error) {
	manager, err := newKustomization(j)
	if err != nil {
		return nil, err
	}
	var found []finding
	for _, object := range j.manifests {
		change, _, _, err := manager.Diff(ctx, object, ssa.DefaultDiffOptions())
		if err != nil {
			return nil, err
		}
		if change.Action != ssa.UnchangedAction {
			found = append(found, finding{j.target(object), string(change.Action), ""})
		}
	}
	return found, nil
}

func kustomizePrune(ctx context.Context, j job) ([]finding, error) {
	manager, err := newKustomization(j)
	if err != nil {
		return nil, err
	}
	options := ssa.DefaultDeleteOptions()
	options.Inclusions = manager.GetOwnerLabels(j.name, j.namespace)
	changes, err := manager.DeleteAll(ctx, j.manifests, options)
	if err != nil {
		return nil, err
	}
	return said(changes), nil
}

func said(changes *ssa.ChangeSet) []finding {
	var found []finding
	for _, change := range changes.Entries {
		subject := strings.Split(change.Subject, "/") // Kind/namespace/name or Kind/name
		found = append(found, finding{subject[0] + "/" + subject[len(subject)-1], string(change.Action), ""})
	}
	return found
}
