// Argo CD: its engine compares, synchronizes with hooks and waves, prunes and judges health. What the controller of
// Argo CD wraps around the engine is here as far as it bears on a chart: resources that are left out, tracking by
// annotation, status that isn't compared, and the names of its field managers.
package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/engine"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/hook"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	trackingAnnotation = "argocd.argoproj.io/tracking-id"
	argoManager        = "argocd-controller"
	revision           = "tested"
)

// excluded holds kinds by API group that Argo CD 3 leaves out as installed: those in its code (an empty list means the
// whole group), and of its argocd-cm those that are Kubernetes' own.
var excluded = map[string][]string{
	"":                      {"Event", "Endpoints"},
	"events.k8s.io":         {},
	"metrics.k8s.io":        {},
	"coordination.k8s.io":   {"Lease"},
	"discovery.k8s.io":      {"EndpointSlice"},
	"authentication.k8s.io": {"SelfSubjectReview", "TokenReview"},
	"authorization.k8s.io": {
		"LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview",
	},
	"certificates.k8s.io": {"CertificateSigningRequest"},
}

type exclusions struct{}

func (exclusions) IsExcludedResource(group, kind, _ string) bool {
	kinds, found := excluded[group]
	return found && (len(kinds) == 0 || slices.Contains(kinds, kind))
}

// withoutStatus is Argo CD's `ignoreResourceStatusField: all`, the default.
type withoutStatus struct{}

func (withoutStatus) Normalize(object *unstructured.Unstructured) error {
	if object != nil {
		unstructured.RemoveNestedField(object.Object, "status")
	}
	return nil
}

// argo is one Application: its targets, and what of it is in the cluster.
type argo struct {
	job
	cache    cache.ClusterCache
	targets  []*unstructured.Unstructured
	warnings []finding
}

type tracked struct{ id string }

func newArgo(j job) (argo, func(), error) {
	application := argo{job: j}
	clusterCache := cache.NewClusterCache(
		j.config,
		cache.SetLogr(logr.Discard()),
		cache.SetSettings(cache.Settings{ResourcesFilter: exclusions{}}),
		cache.SetPopulateResourceInfoHandler(func(object *unstructured.Unstructured, _ bool) (any, bool) {
			id := object.GetAnnotations()[trackingAnnotation]
			return tracked{id}, id != ""
		}),
	)
	if err := clusterCache.EnsureSynced(); err != nil {
		return application, nil, err
	}
	application.cache = clusterCache
	for _, object := range j.manifests {
		group := object.GroupVersionKind().Group
		if (exclusions{}).IsExcludedResource(group, object.GetKind(), "") {
			application.warnings = append(application.warnings, finding{j.target(object), "ExcludedResourceWarning", ""})
			continue
		}
		if namespaced, err := clusterCache.IsNamespaced(object.GroupVersionKind().GroupKind()); err != nil {
			return application, nil, fmt.Errorf("%s: %w", j.target(object), err)
		} else if namespaced && object.GetNamespace() == "" {
			object.SetNamespace(j.namespace)
		}
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[trackingAnnotation] = application.idOf(kube.GetResourceKey(object))
		object.SetAnnotations(annotations)
		application.targets = append(application.targets, object)
	}
	return application, func() { clusterCache.Invalidate() }, nil
}

// idOf is what the annotation says; objects without a namespace are noted with the Application's.
func (a argo) idOf(key kube.ResourceKey) string {
	namespace := key.Namespace
	if namespace == "" {
		namespace = a.namespace
	}
	return fmt.Sprintf("%s:%s/%s:%s/%s", a.name, key.Group, key.Kind, namespace, key.Name)
}

// isMine tells the Application's own objects from copies that carry its annotation, too.
func (a argo) isMine(resource *cache.Resource) bool {
	info, ok := resource.Info.(tracked)
	return ok && info.id == a.idOf(resource.ResourceKey())
}

func (a argo) kubectl() *kube.KubectlCmd {
	return &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}
}

// sync returns what became of each object; hooks that belong to no phase of a sync are named as left alone.
func (a argo) sync(ctx context.Context) ([]finding, error) {
	found := a.warnings
	for _, object := range a.targets {
		if hook.IsHook(object) && len(hook.Types(object)) == 0 {
			found = append(found, finding{a.target(object), "HookOfNoSync", fmt.Sprint(hook.DeletePolicies(object))})
		}
	}
	results, err := engine.NewEngine(a.config, a.cache, engine.WithLogr(logr.Discard())).Sync(
		ctx, a.targets, a.isMine, revision, a.namespace,
		sync.WithPrune(true), sync.WithManifestValidation(true), sync.WithLogr(logr.Discard()),
	)
	if err != nil {
		return nil, err
	}
	for _, result := range results {
		says := string(result.Status)
		if result.HookType != "" {
			says = string(result.HookType) + " " + string(result.HookPhase)
		}
		found = append(found, finding{result.ResourceKey.Kind + "/" + result.ResourceKey.Name, says, result.Message})
	}
	return found, nil
}

func (a argo) diff(ctx context.Context, options ...diff.Option) ([]finding, error) {
	live, err := a.cache.GetManagedLiveObjs(a.targets, a.isMine)
	if err != nil {
		return nil, err
	}
	pairs := sync.Reconcile(a.targets, live, a.namespace, a.cache)
	options = append(options, diff.WithLogr(logr.Discard()), diff.WithNormalizer(withoutStatus{}))
	results, err := diff.DiffArray(pairs.Target, pairs.Live, options...)
	if err != nil {
		return nil, err
	}
	found := a.warnings
	for index, result := range results.Diffs {
		switch target, stored := pairs.Target[index], pairs.Live[index]; {
		case stored == nil:
			found = append(found, finding{a.target(target), "Missing", ""})
		case target == nil && hook.IsHook(stored):
		case target == nil:
			found = append(found, finding{a.target(stored), "PruningRequired", ""})
		case result.Modified:
			patch, err := jsonpatch.CreateMergePatch(result.NormalizedLive, result.PredictedLive)
			if err != nil {
				return nil, err
			}
			found = append(found, finding{a.target(target), "OutOfSync", string(patch)})
		}
	}
	return found, nil
}

func argoSync(ctx context.Context, j job) ([]finding, error) {
	application, done, err := newArgo(j)
	if err != nil {
		return nil, err
	}
	defer done()
	return application.sync(ctx)
}

func argoPrune(ctx context.Context, j job) ([]finding, error) {
	j.manifests = nil
	return argoSync(ctx, j)
}

func argoDiff(ctx context.Context, j job) ([]finding, error) {
	application, done, err := newArgo(j)
	if err != nil {
		return nil, err
	}
	defer done()
	return application.diff(ctx)
}

func argoServerDiff(ctx context.Context, j job) ([]finding, error) {
	application, done, err := newArgo(j)
	if err != nil {
		return nil, err
	}
	defer done()
	applier, cleanup, err := application.kubectl().ManageServerSideDiffDryRuns(j.config)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	return application.diff(
		ctx,
		diff.WithServerSideDiff(true),
		diff.WithServerSideDryRunner(diff.NewK8sServerSideDryRunner(applier)),
		diff.WithManager(argoManager),
		diff.WithGVKParser(application.cache.GetGVKParser()),
	)
}

func argoHealth(ctx context.Context, j job) ([]finding, error) {
	var found []finding
	for _, object := range j.manifests {
		kubectl := argo{job: j}.kubectl()
		live, err := kubectl.GetResource(ctx, j.config, object.GroupVersionKind(), object.GetName(), object.GetNamespace())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", j.target(object), err)
		}
		status, err := health.GetResourceHealth(live, nil)
		if err != nil {
			return nil, err
		}
		if status == nil { // a kind that has no health
			status = &health.HealthStatus{Status: health.HealthStatusHealthy}
		}
		found = append(found, finding{j.target(object), string(status.Status), status.Message})
	}
	return found, nil
}
